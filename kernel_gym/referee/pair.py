"""KernelBench pairs: derives a statement from `Model`, `get_inputs` and `get_init_inputs`.

Sizes that are equal in the inputs become one axis. The model is tried on other sizes of each axis,
without data; an axis on which it fails stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from kernel_gym.judge.screen import screen
from kernel_gym.referee.statement import DTYPES, ClaimError, InputPart, OutputPart, Statement

ENTRY = "claimed"
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_HIGHEST = 1 << 20
_REFERENCE = """

_model = Model(*get_init_inputs())


def {entry}({arguments}):
    with torch.no_grad():
        return _model({arguments})
"""
_CANDIDATE = """

_claimed = ModelNew({settings})


def {entry}({arguments}):
    return _claimed({arguments})
"""


def pair_statement(text: str) -> tuple[Statement, str, str]:
    """The statement of a pair, the text of its reference, and what to append to its kernel.

    Args:
        text: The file with `Model`. It runs in this process: it belongs to the person who asks.

    Raises:
        ClaimError: The inputs cannot be made, or the model has parameters.
    """
    refused = screen(text, "triton").rejection
    if refused:
        raise ClaimError(f"reference: {refused}")
    scope: dict[str, Any] = {"torch": torch, "F": F, "__name__": "pair"}
    try:
        exec(compile(text, "<pair>", "exec"), scope)
        settings = list(scope["get_init_inputs"]())
        inputs = list(scope["get_inputs"]())
        model = scope["Model"](*settings)
    except Exception as error:
        raise ClaimError(f"the inputs cannot be made: {type(error).__name__}: {error}") from None
    _require_plain(model, settings)
    names = [f"x{number}" for number in range(len(inputs))]
    axes = _axes(inputs)
    parts = [_part(name, value, axes) for name, value in zip(names, inputs, strict=True)]
    sizes = {name: size for size, name in axes.items()}
    outputs = _outputs(model, parts, sizes)
    legal: dict[str, tuple[int, ...]] = {
        name: (1, _HIGHEST) if _free(model, parts, sizes, name) else (size, size)
        for name, size in sizes.items()
    }
    statement = Statement(
        entry=ENTRY, shapes=(sizes,), axes=legal, input=tuple(parts), output=outputs
    )
    arguments = ", ".join(names)
    reference = text + _REFERENCE.format(entry=ENTRY, arguments=arguments)
    constants = ", ".join(map(repr, settings))
    tail = _CANDIDATE.format(entry=ENTRY, arguments=arguments, settings=constants)
    return statement, reference, tail


def _require_plain(model: Any, settings: Sequence[Any]) -> None:
    if not isinstance(model, torch.nn.Module):
        raise ClaimError(f"Model: found {type(model).__name__}, expected a torch.nn.Module")
    state = [*model.state_dict()]
    if state:
        raise ClaimError(f"Model has parameters ({', '.join(state[:4])}): random weights of two "
                         "modules differ; pass the weights as inputs in a statement")  # fmt: skip
    if not all(isinstance(s, int | float | bool | str) or s is None for s in settings):
        raise ClaimError("get_init_inputs: expected numbers and texts only")


def _axes(inputs: Sequence[Any]) -> dict[int, str]:
    """A name for each distinct size, in order of appearance."""
    sizes = [s for v in inputs if isinstance(v, torch.Tensor) for s in v.shape]
    if not sizes:
        raise ClaimError("get_inputs: found no tensor with an axis")
    return {size: f"n{number}" for number, size in enumerate(dict.fromkeys(sizes))}


def _part(name: str, value: Any, axes: Mapping[int, str]) -> InputPart:
    if isinstance(value, torch.Tensor):
        if value.dtype not in _NAMES:
            raise ClaimError(
                f"get_inputs: found {value.dtype}, expected one of {', '.join(DTYPES)}"
            )
        shape = ", ".join(axes[size] for size in value.shape)
        return InputPart(name=name, dtype=_NAMES[value.dtype], shape=shape)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return InputPart(name=name, value=value)
    raise ClaimError(f"get_inputs: found {type(value).__name__}, expected tensors and numbers")


def _tried(model: Any, parts: Sequence[InputPart], sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Runs the model without data and returns its outputs."""
    values: list[Any] = []
    for part in parts:
        if part.value is not None:
            values.append(part.value)
            continue
        shape = [sizes[name.strip()] for name in part.shape.split(",") if name.strip()]
        values.append(torch.empty(shape, dtype=part.torch_dtype, device="meta"))
    with torch.no_grad():
        answer = model(*values)
    return tuple(answer) if isinstance(answer, list | tuple) else (answer,)


def _outputs(
    model: Any, parts: Sequence[InputPart], sizes: Mapping[str, int]
) -> tuple[OutputPart, ...]:
    """The outputs, with each size as an axis of the same size or as a constant."""
    names = {size: name for name, size in sizes.items()}
    try:
        answers = _tried(model, parts, sizes)
    except Exception as error:
        raise ClaimError(
            f"Model fails on its own inputs: {type(error).__name__}: {error}"
        ) from None
    outputs = []
    for number, answer in enumerate(answers):
        if not isinstance(answer, torch.Tensor) or answer.dtype not in _NAMES:
            raise ClaimError(f"Model: output {number}: expected a tensor of a known dtype")
        shape = ", ".join(names.get(size, str(size)) for size in answer.shape) or "1"
        outputs.append(OutputPart(name=f"y{number}", dtype=_NAMES[answer.dtype], shape=shape))
    return tuple(outputs)


def _free(model: Any, parts: Sequence[InputPart], sizes: Mapping[str, int], name: str) -> bool:
    """Whether the model takes other sizes of an axis, and its outputs follow."""
    try:
        expected = _outputs(model, parts, sizes)
        for size in (sizes[name] + 3, max(1, sizes[name] // 2)):
            other = {**sizes, name: size}
            if len(set(other.values())) < len(other):
                continue  # two axes of one size cannot be distinguished
            if _outputs(model, parts, other) != expected:
                return False
    except Exception:
        return False
    return True
