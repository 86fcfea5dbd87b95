"""The arguments of an operator of PyTorch in a plan: JSON of a few kinds, with tensors by number.

The JSON is `{"args": [...], "kwargs": {...}}`. A value is null, a boolean, a number, a text, or an
object with one key: `tensor` with a number, or a key of `kernel_gym.protocol.operators`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from kernel_gym.plans import limits
from kernel_gym.plans.addresses import STAND_IN_BASE, STAND_IN_BYTES
from kernel_gym.plans.reading import BadPlanError

_KINDS = ("list", "complex", "host", "float", "dtype", "device", "format")


def operator_arguments(text: str) -> tuple[list[object], dict[str, object]]:
    """Reads the arguments of an operator and checks their form.

    Args:
        text: The JSON.

    Raises:
        BadPlanError: It has another form, or a number is an address of a tensor without data.
    """
    try:
        value = json.loads(text)
        args, named = value["args"], value["kwargs"]
        known = len(value) == 2 and isinstance(args, list) and isinstance(named, dict)
        count = sum(1 for _ in _values([*args, *named.values()])) if known else 0
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadPlanError("the arguments of an operator are malformed") from None
    if not known or count > limits.MAX_OPERATOR_VALUES:
        raise BadPlanError(
            f"the arguments of an operator are malformed, or more than {limits.MAX_OPERATOR_VALUES}"
        )
    return args, named


def operator_tensors(text: str) -> list[int]:
    """Returns the numbers of tensors among the arguments of an operator, in order.

    Raises:
        BadPlanError: The arguments are malformed.
    """
    args, named = operator_arguments(text)
    return [value["tensor"] for value in _values([*args, *named.values()]) if _is_tensor(value)]


def with_tensors(value: Any, place: Callable[[int], object]) -> object:
    """Returns a value of arguments in which each tensor is replaced.

    Args:
        value: A value that `operator_arguments` has read.
        place: Returns what stands for a tensor of a number.
    """
    if _is_tensor(value):
        return place(value["tensor"])
    if isinstance(value, dict):
        return {key: with_tensors(inner, place) for key, inner in value.items()}
    return [with_tensors(item, place) for item in value] if isinstance(value, list) else value


def _values(values: list[object], depth: int = 0) -> Iterator[Any]:
    """Yields all values, nested ones included.

    Raises:
        ValueError: One has another form.
    """
    for value in values:
        yield value
        if isinstance(value, int | float):
            if STAND_IN_BASE <= value < STAND_IN_BASE + STAND_IN_BYTES:
                raise ValueError("an address")
        elif isinstance(value, dict):
            ((kind, inner),) = value.items()
            if depth > 4 or (kind not in _KINDS and not _is_tensor(value)):
                raise ValueError("an unknown kind")
            if isinstance(inner, list):
                yield from _values(inner, depth + 1)
            elif isinstance(inner, dict):
                raise ValueError("an object within an object")
        elif value is not None and not isinstance(value, str):
            raise ValueError("a list without a kind")


def _is_tensor(value: object) -> bool:
    return isinstance(value, dict) and list(value) == ["tensor"] and type(value["tensor"]) is int
