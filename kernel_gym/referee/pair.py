"""KernelBench pairs: derives a statement from `Model`, `get_inputs` and `get_init_inputs`.

Their code runs in a confined process only, which traces it. Sizes that are equal in the inputs
become one axis. The model is traced at other sizes of each axis; an axis on which it fails stays as
it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from pydantic import ValidationError

from kernel_gym.imports.authoring.request import FoundSizes, TracingRequest
from kernel_gym.imports.authoring.tracer import CodeError, Tracer
from kernel_gym.imports.traced.graph import Node, Traced
from kernel_gym.referee.reference import ConfinedReference
from kernel_gym.referee.statement import DTYPES, ClaimError, InputPart, OutputPart, Statement
from kernel_gym.tasks.shapes import shape_of

ENTRY = "claimed"
_HIGHEST = 1 << 20
_FILE = "pair.py"
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
        text: The file with `Model`. It is never executed in this process.

    Raises:
        ClaimError: The inputs cannot be made, or the model has parameters.
    """
    traced = _traced(text)
    try:
        return _stated(text, _settings(traced), _inputs(traced))
    except ValidationError as error:
        raise ClaimError(f"get_inputs: {error.errors()[0]['msg']}") from None


def _stated(
    text: str, settings: Sequence[object], inputs: Sequence[object]
) -> tuple[Statement, str, str]:
    names = [f"x{number}" for number in range(len(inputs))]
    axes = _axes(inputs)
    parts = [_part(name, value, axes) for name, value in zip(names, inputs, strict=True)]
    sizes = {name: size for size, name in axes.items()}
    arguments = ", ".join(names)
    reference = text + _REFERENCE.format(entry=ENTRY, arguments=arguments)
    model = ConfinedReference(reference, ENTRY, parts)
    outputs = _outputs(model, parts, sizes)
    legal: dict[str, tuple[int, ...]] = {
        name: (1, _HIGHEST) if _free(model, parts, sizes, name) else (size, size)
        for name, size in sizes.items()
    }
    statement = Statement(
        entry=ENTRY, shapes=(sizes,), axes=legal, input=tuple(parts), output=outputs
    )
    constants = ", ".join(map(repr, settings))
    tail = _CANDIDATE.format(entry=ENTRY, arguments=arguments, settings=constants)
    return statement, reference, tail


def _traced(text: str) -> Traced:
    request = TracingRequest(
        {_FILE: text}, f"{_FILE}:Model", f"{_FILE}:get_inputs", f"{_FILE}:get_init_inputs"
    )
    try:
        with Tracer(request, FoundSizes({})) as tracer:
            traced = tracer.trace({}, train=True)
    except CodeError as error:
        raise ClaimError(f"the inputs cannot be made: {error}") from None
    state = [name for name, kind in traced.kinds.items() if kind != "input"]
    if state:
        raise ClaimError(f"Model has parameters ({', '.join(state[:4])}): random weights of two "
                         "modules differ; pass the weights as inputs in a statement")  # fmt: skip
    return traced


def _settings(traced: Traced) -> list[object]:
    """The numbers and texts that the constructor takes."""
    init = traced.call.init
    settings = [_number(argument) for argument in init] if isinstance(init, list) else [{}]
    if not all(isinstance(s, int | float | bool | str) or s is None for s in settings):
        raise ClaimError("get_init_inputs: expected a list of numbers and texts only")
    return settings


def _inputs(traced: Traced) -> list[object]:
    """The arguments of the model: the nodes of tensors, and other values."""
    nodes = {str(node.name): node for node in traced.forward.arguments}
    args = traced.call.args
    if not isinstance(args, list) or not args or not isinstance(args[0], list):
        raise ClaimError("get_inputs: expected a list")
    if args[1:] not in ([], [{"dict": {}}]):
        raise ClaimError("get_inputs: found a dictionary, expected a list")
    return [nodes.get(_tensor_name(arg)) or _number(arg) for arg in args[0]]


def _tensor_name(value: object) -> str:
    name = value.get("tensor") if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""


def _number(value: object) -> object:
    """A number that JSON has no text for, or the value as it is."""
    if isinstance(value, dict) and value.get("float") in ("inf", "-inf", "nan"):
        return float(value["float"])
    return value


def _axes(inputs: Sequence[object]) -> dict[int, str]:
    """A name for each distinct size, in order of appearance."""
    sizes = [size for node in inputs if isinstance(node, Node) for size in node.shape or ()]
    if not sizes:
        raise ClaimError("get_inputs: found no tensor with an axis")
    return {size: f"n{number}" for number, size in enumerate(dict.fromkeys(sizes))}


def _part(name: str, value: object, axes: Mapping[int, str]) -> InputPart:
    if isinstance(value, Node):
        if value.dtype not in DTYPES:
            raise ClaimError(f"get_inputs: found {value.dtype}, expected one of "
                             f"{', '.join(DTYPES)}")  # fmt: skip
        shape = ", ".join(axes[size] for size in value.shape or ())
        return InputPart(name=name, dtype=value.dtype, shape=shape)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return InputPart(name=name, value=value)
    kind = value.get("other", "dict") if isinstance(value, dict) else type(value).__name__
    raise ClaimError(f"get_inputs: found {str(kind)[:60]}, expected tensors and numbers")


def _outputs(
    model: ConfinedReference, parts: Sequence[InputPart], sizes: Mapping[str, int]
) -> tuple[OutputPart, ...]:
    """The outputs, with each size as an axis of the same size or as a constant."""
    names = {size: name for name, size in sizes.items()}
    outputs = []
    for number, answer in enumerate(model.run(_empty(parts, sizes))):
        dtype = str(answer.dtype).removeprefix("torch.")
        if dtype not in DTYPES:
            raise ClaimError(f"Model: output {number}: found {dtype}, expected one of "
                             f"{', '.join(DTYPES)}")  # fmt: skip
        shape = ", ".join(names.get(size, str(size)) for size in answer.shape) or "1"
        outputs.append(OutputPart(name=f"y{number}", dtype=dtype, shape=shape))
    return tuple(outputs)


def _empty(parts: Sequence[InputPart], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Arguments without values."""
    return {
        part.name: part.value
        if part.value is not None
        else torch.empty(shape_of(part.shape, sizes), dtype=part.torch_dtype, device="meta")
        for part in parts
    }


def _free(
    model: ConfinedReference, parts: Sequence[InputPart], sizes: Mapping[str, int], name: str
) -> bool:
    """Whether the model takes other sizes of an axis, and its outputs follow."""
    expected = _outputs(model, parts, sizes)
    for size in (sizes[name] + 3, max(1, sizes[name] // 2)):
        other = {**sizes, name: size}
        if len(set(other.values())) < len(other):
            continue  # two axes of one size cannot be distinguished
        try:
            if _outputs(model, parts, other) != expected:
                return False
        except (ClaimError, RuntimeError):
            return False
    return True
