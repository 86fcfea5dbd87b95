"""The process that loads a package and runs a model with it.

It runs the package's code with the rights of the user, like every program that installs it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from kernel_gym.errors import InputError
from kernel_gym.packages.evidence import Evidence, read_evidence
from kernel_gym.packages.models import measure, parity
from kernel_gym.packages.models.build import (
    OMITTED,
    ModelError,
    build,
    generates,
    inputs_of,
    read_config,
)
from kernel_gym.packages.models.captured import NAME, captured_phase
from kernel_gym.packages.models.operations import OPERATIONS, Operation
from kernel_gym.packages.models.pretrained import ModelConfig, PretrainedModel
from kernel_gym.packages.models.replace import replace
from kernel_gym.packages.models.report import Deployment, RefusedCalls
from kernel_gym.packages.models.sites import Replaced
from kernel_gym.packages.models.trace import extend_functions, trace
from kernel_gym.tasks import Problem, TensorArg, get_problem

BATCH = 2
PROMPT = 32


@dataclass(frozen=True)
class Loaded:
    """A package that is loaded: its evidence, its folder, its module, and the variant's backend."""

    evidence: Evidence
    folder: Path
    kernel: ModuleType
    backend: str

    @property
    def problem(self) -> Problem:
        """The problem of its task."""
        return get_problem(self.evidence.task.split("/")[1])

    @property
    def operation(self) -> Operation:
        """The operation of models that the problem is."""
        return OPERATIONS[self.problem.name]


def main() -> None:
    """Reads a request from the first file of the command, and writes the result to the second."""
    request_path, result_path = sys.argv[1:]
    request = json.loads(Path(request_path).read_text(encoding="utf-8"))
    try:
        result: dict[str, object] = {"deployment": run(**request).model_dump(mode="json")}
    except InputError as error:
        result = {"error": str(error)}
    Path(result_path).write_text(json.dumps(result), encoding="utf-8")


def run(package: str, model: str, device: str, name: str) -> Deployment:
    """Puts a package into a model and compares.

    Args:
        package: The folder of the package, whose files are those of its evidence.
        model: A configuration: a file, a folder or a model type.
        device: A device of PyTorch.
        name: The name of the device in the report.
    """
    loaded = load(Path(package), device)
    return compare(loaded, read_config(model, loaded.operation.tiny), device, name)


def load(package: Path, device: str) -> Loaded:
    """Loads a package by the stock client: the kernel's variant, or plain PyTorch elsewhere."""
    from kernels import get_local_kernel

    evidence = read_evidence(package)
    here = "rocm" if torch.version.hip else "cuda"
    is_gpu = torch.device(device).type != "cpu"
    backend = here if is_gpu and here == evidence.backend else "cpu"
    kernel = get_local_kernel(package, backend=backend, trust_remote_code=True)
    return Loaded(evidence, package, kernel, backend)


@torch.compiler.set_stance("force_eager")
def compare(
    loaded: Loaded, config: ModelConfig, device: str, name: str, decode: bool = True
) -> Deployment:
    """Returns the deployment of a loaded package in the model of a configuration.

    Args:
        loaded: The package.
        config: The configuration of the model.
        device: A device of PyTorch.
        name: The name of the device in the report.
        decode: Whether tokens are generated and timed.

    Raises:
        ModelError: The model cannot be built, or the operation is in none of its modules.
    """
    problem, dtype = loaded.problem, _dtype(loaded)
    model = build(config, dtype, "eager" if problem.name == "softmax" else "sdpa")
    inputs = inputs_of(model, BATCH, PROMPT)
    if problem.name == "cross_entropy" and generates(model):
        inputs["labels"] = inputs["input_ids"]
    replaced = _replaced(loaded, problem, model, inputs)
    clock = measure.DeviceClock(device)
    values: dict[str, object] = {
        "task": loaded.evidence.task,
        "stated_gain": loaded.evidence.unseen_speedup,
        "source_sha256": loaded.evidence.source_sha256,
        "model": config.model_type,
        "parameters": sum(p.numel() for p in model.parameters()),
        "device": name,
        "clock": "modelled" if clock.modelled else "measured",
        "dtype": str(dtype).removeprefix("torch."),
        OMITTED: getattr(config, OMITTED, ""),
        "sites": tuple(replaced.sites),
    }
    if replaced.turn_on:
        operator = measure.Operator(loaded.kernel, loaded.operation, replaced.fused)
        try:
            values |= _compared(replaced, inputs, device, clock, operator, decode)
        except Exception as error:  # of the model's code or the package's: a result, not a crash
            values["failure"] = _first_line(error)
    return Deployment.model_validate(values)


def _first_line(error: Exception) -> str:
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {text}"[:300]


def _longer(model: PretrainedModel, inputs: dict[str, Tensor], device: str) -> dict[str, Tensor]:
    """Returns as many prompts or images as a measurement takes, if the model takes one of them."""
    most = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if "pixel_values" in inputs:
        longer = inputs_of(model, measure.MEASURED_IMAGES, PROMPT)
    elif most is not None and set(inputs) <= {"input_ids", "attention_mask", "labels"}:
        length = min(most, measure.MEASURED_PROMPT)
        longer = inputs_of(model, measure.MEASURED_TOKENS // length, length)
    else:
        return inputs
    if "labels" in inputs:
        longer["labels"] = longer["input_ids"]
    return {key: value.to(device) for key, value in longer.items()}


def _dtype(loaded: Loaded) -> torch.dtype:
    """Returns the type of the model: that of the package's first tensor of floats by default."""
    tensors = (arg for arg in loaded.problem.args if isinstance(arg, TensorArg))
    first = (arg.dtype for arg in tensors if arg.dtype.is_floating_point)
    return loaded.operation.dtype or next(first)


def _replaced(
    loaded: Loaded, problem: Problem, model: PretrainedModel, inputs: dict[str, Tensor]
) -> Replaced:
    functions = loaded.operation.functions
    if functions:
        extend_functions(model, functions)
    try:
        traced = trace(model, inputs)
    except Exception as error:
        raise ModelError(f"{model.config.model_type}: does not run: {_first_line(error)}") from None
    replaced = replace(model, traced, problem.name, loaded.kernel, loaded.folder, loaded.backend)
    if not replaced.sites:
        omitted = getattr(model.config, OMITTED, "")
        without = f": it is built without the quantization {omitted!r}" if omitted else ""
        raise ModelError(
            f"{model.config.model_type}: {problem.name} is computed in none of its modules{without}"
        )
    return replaced


def _compared(
    replaced: Replaced,
    inputs: dict[str, Tensor],
    device: str,
    clock: measure.DeviceClock,
    operator: measure.Operator,
    decode: bool,
) -> dict[str, object]:
    """Returns the errors, tokens and times of a model with and without the package."""
    model = replaced.model
    truth = parity.truth_of(model, inputs).to("cpu" if clock.modelled else device)
    decode = decode and generates(model) and "labels" not in inputs
    if decode:
        inputs = inputs | parity.decisive(truth, inputs, BATCH, PROMPT)
    right = parity.outputs_of(truth, parity.cast(inputs, truth))
    model.to(device)
    there = {key: value.to(device) for key, value in inputs.items()}
    with measure.recorded(operator.kernel) as calls:
        closeness = parity.closeness(replaced, there, right)
    values: dict[str, object] = {
        "yardstick": str(truth.dtype).removeprefix("torch."),
        "closeness": closeness,
    }
    refusals = _refusals("gradients", calls)
    name = "loss" if "labels" in inputs else "prefill"
    timed = there if clock.modelled else _longer(model, there, device)
    phase, calls = measure.forward_phase(name, replaced, timed, clock, operator)
    phases = [phase]
    refusals += _refusals(name, calls)
    if decode:
        phase, calls, (original, ours) = measure.decode_phase(replaced, there, clock, operator)
        phases.append(phase)
        refusals += _refusals("decode", calls)
        prompt = original.shape[1] - parity.STEPS
        values["tokens"] = parity.compare_tokens(original, ours, prompt, truth, model)
    if decode and clock.captures and not getattr(model.config, "is_encoder_decoder", False):
        try:
            phase, calls = captured_phase(replaced, there, operator, device)
        except (AttributeError, RuntimeError) as error:  # of the model's code
            values["uncaptured"] = _first_line(error)
        else:
            phases.append(phase)
            refusals += _refusals(NAME, calls)
    return values | {"phases": tuple(phases), "refusals": tuple(refusals)}


def _refusals(phase: str, calls: measure.Calls) -> list[RefusedCalls]:
    """Returns the calls of one pass that ran the model's own code."""
    counts = sorted(calls.refused.items())
    return [RefusedCalls(phase=phase, reason=reason, calls=count) for reason, count in counts]
