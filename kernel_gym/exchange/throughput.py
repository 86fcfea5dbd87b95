"""GB/s and TFLOPS of a reply to a task of KernelBenchX, by the suite's own counts."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from kernel_gym.exchange.arithmetic import SizedTensor, UnknownValueError, result_of
from kernel_gym.exchange.imported_replies import ImportedReply, checkout_of
from kernel_gym.imports.readers.base import CheckoutError, read_text
from kernel_gym.imports.readers.halves import parsed
from kernel_gym.imports.recorded.facts import tensors_at
from kernel_gym.tasks.workload import Split

COUNTS = "metrics/golden_metrics/{}_perf.py"
"""Where the suite states the bytes and operations of a task, by its name."""
ONE_SECOND_MS = 1e3
"""The run time with which the suite's formulas are evaluated: rates are then amounts."""


@dataclass(frozen=True)
class Throughput:
    """One timed workload.

    Attributes:
        sizes: Its dimensions.
        dtype: The dtype of its first input.
        milliseconds: The time of the reply.
        gigabytes: 1e9 bytes moved by the suite's count; by default of all inputs and results.
        gigaflops: 1e9 operations by the suite's count; None where the suite's formula is unknown.
    """

    sizes: Mapping[str, int]
    dtype: str
    milliseconds: float
    gigabytes: float
    gigaflops: float | None

    def row(self) -> dict[str, object]:
        """The workload under the keys of the suite."""
        seconds = self.milliseconds / 1e3
        flops = None if self.gigaflops is None else self.gigaflops / seconds / 1e3
        return {
            "input_size": dict(self.sizes),
            "ms": self.milliseconds,
            "GB/s": self.gigabytes / seconds,
            "TFLOPS": "N/A" if flops is None else flops,
        }


def throughput(reply: ImportedReply) -> list[Throughput]:
    """Returns the timed train workloads of a right reply, in order."""
    problem = reply.task.problem
    formulas = _formulas(reply)
    timed = []
    for workload in reply.record.evaluation.by_split(Split.TRAIN):
        tensors = tensors_at(problem, workload.dims)
        if tensors is None or not workload.candidate_seconds or not workload.baseline_seconds:
            continue
        inputs = [SizedTensor(shape, dtype.itemsize) for shape, dtype in tensors]
        moved = sum(torch.Size(part.shape).numel() * part.itemsize for part in inputs)
        counted = _counted(formulas.get("get_gbps"), inputs)
        operations = _counted(formulas.get("get_tflops"), inputs)
        timed.append(
            Throughput(
                sizes=workload.dims,
                dtype=str(tensors[0][1]).removeprefix("torch.") if tensors else "",
                milliseconds=workload.candidate_seconds * 1e3,
                gigabytes=(moved + problem.bytes(workload.dims)) / 1e9
                if counted is None
                else counted,
                gigaflops=None if operations is None else operations * 1e3,
            )
        )
    return timed


def _formulas(reply: ImportedReply) -> dict[str, ast.FunctionDef]:
    """The methods of the suite's file of counts, by name; {} if there is none."""
    name = COUNTS.format(reply.name)
    try:
        tree = parsed(name, read_text(checkout_of("kernelbenchx"), name))
    except CheckoutError:
        return {}
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _counted(function: ast.FunctionDef | None, inputs: list[SizedTensor]) -> float | None:
    """The amount by a formula of (self, inputs, milliseconds); None if it has no value here."""
    if function is None or len(function.args.args) != 3 or not inputs:
        return None
    owner, given, time = (argument.arg for argument in function.args.args)
    value = inputs[0] if len(inputs) == 1 else tuple(inputs)
    try:
        return result_of(function, {owner: None, given: value, time: ONE_SECOND_MS})
    except UnknownValueError:
        return None
