"""From recorded inputs of a module to a generator of inputs at any sizes, for tracing.

Some suites yield inputs for several shapes. The shapes of recorded inputs are unified into axes.
Integers of the constructor that say how large a module is become axes as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel_gym.imports.readers.base import UnsupportedTask
from kernel_gym.imports.recorded.calls import RecordedCall, TensorForm
from kernel_gym.imports.recorded.templates import templates_of

_SIZES = re.compile(
    r"size|dim|feature|channel|hidden|vocab|length|d_model|d_ff|embd|embed|width|height"
)
_NO_SIZES = re.compile(r"kernel|stride|pad|dilat|group|head|layers|pool")
_NAME = re.compile(r"[A-Za-z_]\w*")


class Constructed(BaseModel):
    """The arguments of a module's constructor, as a hostile process states them."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    args: list[int | float | bool | str | None] = Field(max_length=64)
    kwargs: dict[str, int | float | bool | str | None] = Field(max_length=64)


@dataclass(frozen=True)
class Generator:
    """A generator of inputs.

    Attributes:
        text: A Python file with sizes as its integers, `make_inputs` and `make_init`.
        points: The sizes of the recorded inputs.
    """

    text: str
    points: tuple[Mapping[str, int], ...]


def constructed(answer: Mapping[str, object]) -> Constructed:
    """Parses the arguments of a constructor.

    Raises:
        UnsupportedTask: They are no plain values.
    """
    try:
        made = Constructed.model_validate(answer.get("init"))
    except ValidationError:
        raise UnsupportedTask("its constructor takes other values than numbers") from None
    if not all(_NAME.fullmatch(name) for name in made.kwargs):
        raise UnsupportedTask("its constructor has a parameter that is no identifier")
    return made


def generator_of(
    calls: Sequence[RecordedCall], made: Constructed, parameters: Sequence[str]
) -> Generator:
    """Writes a generator for the most frequent form of recorded inputs.

    Args:
        calls: The recorded inputs, as calls of `forward`.
        made: The arguments of the constructor.
        parameters: The names of the constructor's parameters, without `self`.

    Raises:
        UnsupportedTask: An input is of a class of values that cannot be drawn at other sizes.
    """
    template, rows = max(templates_of(calls), key=lambda one: (len(one[1]), len(one[0].axes)))
    largest = max(rows, key=lambda row: math.prod(size for _, size in row.items()))
    base = dict(largest)
    constant = {n: size for n, size in base.items() if all(row[n] == size for row in rows)}
    own: dict[str, int] = {}
    names = [*parameters, *(f"argument_{i}" for i in range(len(made.args)))]
    args = [_sized(n, v, constant, own) for n, v in zip(names, made.args, strict=False)]
    kwargs = {n: _sized(n, v, constant, own) for n, v in made.kwargs.items()}
    tensors = [
        _drawn(form, shape)
        for form, shape in zip(template.call.tensors, template.shapes, strict=True)
    ]
    inputs = [_value(tree, tensors) for tree in template.call.args]
    if template.call.kwargs:
        raise UnsupportedTask("its inputs are named")
    init = (
        "{" + ", ".join(f"{n!r}: {v}" for n, v in kwargs.items()) + "}"
        if kwargs
        else "(" + "".join(f"{v}, " for v in args) + ")"
    )
    lines = ["import torch", ""]
    lines += [f"{name} = {size}" for name, size in {**base, **own}.items()]
    lines += ["", "", "def make_inputs():", f"    return [{', '.join(inputs)}]"]
    lines += ["", "", "def make_init():", f"    return {init}", ""]
    return Generator("\n".join(lines), tuple({**row, **own} for row in rows))


def _sized(
    name: str, value: int | float | str | None, constant: Mapping[str, int], own: dict[str, int]
) -> str:
    """Returns the text of an argument: an axis of the inputs, one of its own, or the value."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 2:
        return repr(value)
    if not _SIZES.search(name) or _NO_SIZES.search(name):
        return repr(value)
    for axis, size in constant.items():
        if size == value:
            return axis
    own[f"of_{name}"] = value
    return f"of_{name}"


def _drawn(form: TensorForm, shape: Sequence[str]) -> str:
    sizes = ", ".join(shape) + ("," if len(shape) == 1 else "")
    values, dtype = form.values, f"dtype=torch.{form.dtype}"
    if values.kind == "float":
        maker = "rand" if float(values.low) >= 0 else "randn"
        return f"torch.{maker}(({sizes}), {dtype})"
    if values.kind in ("integers", "kept", "permutation"):
        high = values.bound or str(int(values.high) + 1)
        return f"torch.randint({int(values.low)}, {high}, ({sizes}), {dtype})"
    if values.kind == "bool":
        return f"(torch.rand(({sizes})) < {values.share:.3f})"
    if values.kind == "constant" and not values.bound:
        return f"torch.full(({sizes}), {values.value}, {dtype})"
    raise UnsupportedTask(f"an input is of the class {values.kind!r}")


def _value(tree: Any, tensors: Sequence[str]) -> str:
    ((kind, value),) = tree.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "size":
        return str(value)
    if kind in ("number", "constant"):
        return repr(value)
    if kind in ("list", "tuple"):
        inner = "".join(f"{_value(one, tensors)}, " for one in value)
        return f"[{inner}]" if kind == "list" else f"({inner})"
    raise UnsupportedTask(f"an input is a {kind}")
