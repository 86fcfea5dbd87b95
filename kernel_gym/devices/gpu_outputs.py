"""What a call left in the memory that judge and worker share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from kernel_gym.devices.base import OutputTensor
from kernel_gym.devices.gpu_arena import Arena
from kernel_gym.devices.gpu_placing import Placed, storage_bytes
from kernel_gym.devices.sim_outputs import parse_output
from kernel_gym.tasks.problem import TensorArg
from kernel_gym.tasks.task import Task


def read_outputs(
    arena: Arena,
    task: Task,
    described: list[dict[str, Any]],
    placed: Placed,
    dims: Mapping[str, int],
) -> list[OutputTensor]:
    """The outputs, trusting none of what the worker said of them."""
    problem = task.problem
    shapes = problem.output_shapes(dims)
    found = []
    for index, output in enumerate(described):
        if "wrong" in output:
            found.append(OutputTensor(None, str(output["wrong"])[:200]))
            continue
        said = parse_output(output)
        if isinstance(said, str):
            found.append(OutputTensor(None, said))
            continue
        alias = _alias(output.get("start"), placed, in_place(task))
        if alias:
            found.append(OutputTensor(None, f"a view of the input {alias!r}"))
            continue
        tensor = torch.empty_strided(said.shape, said.strides, dtype=said.dtype, device="meta")
        if index < len(placed.outputs):
            stated = problem.outputs[index]
            same = tuple(said.shape) == tuple(shapes[stated.name]) and said.dtype == stated.dtype
            if same and tensor.is_contiguous():
                bytes_ = arena.view(placed.outputs[index]).clone()
                tensor = bytes_.view(stated.dtype).view(said.shape)
        found.append(OutputTensor(tensor))
    return found


def modified_inputs(arena: Arena, task: Task, placed: Placed) -> tuple[str, ...]:
    """Inputs whose bytes differ from the judge's copy, but for those declared in place."""
    changed = []
    for name, piece in placed.pieces.items():
        value = placed.inputs[name]
        assert isinstance(value, torch.Tensor)
        same = name in in_place(task) or torch.equal(arena.view(piece), storage_bytes(value))
        if not same:
            changed.append(name)
    return tuple(changed)


def in_place(task: Task) -> frozenset[str]:
    """Inputs that a candidate may overwrite."""
    args = task.problem.args
    return frozenset(a.name for a in args if isinstance(a, TensorArg) and a.in_place)


def _alias(start: Any, placed: Placed, allowed: frozenset[str]) -> str:
    if not isinstance(start, int):
        return ""
    for name, piece in placed.pieces.items():
        if piece.start <= start < piece.end and name not in allowed:
            return name
    return ""
