"""Reads JSON values of a hostile process into plain types, each with its bound.

The messages of errors are inert and short, whatever the value is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kernel_gym.inert import inert_line, shown

Item = TypeVar("Item")


class BadPlanError(Exception):
    """A plan does not have the form of plans, or points outside. The message is inert."""


def fields(value: object, what: str, expected: str) -> Mapping[str, Any]:
    """An object with exactly these keys.

    Args:
        value: The JSON value.
        what: Names it in errors.
        expected: The keys, with spaces between them.

    Raises:
        BadPlanError: It is none.
    """
    keys = expected.split()
    if not isinstance(value, dict) or set(value) != set(keys):
        given = sorted(map(shown, value)) if isinstance(value, dict) else shown(value)
        raise BadPlanError(f"{what} is {inert_line(str(given), 120)}, expected the fields {keys}")
    return value


def whole(value: object, what: str, most: int, least: int = 0) -> int:
    """A whole number within bounds.

    Raises:
        BadPlanError: It is none.
    """
    if type(value) is not int or not least <= value <= most:
        raise BadPlanError(f"{what} is {shown(value)}, expected a number from {least} to {most}")
    return value


def optional(value: object, what: str, most: int) -> int | None:
    """A whole number within bounds, or None.

    Raises:
        BadPlanError: It is neither.
    """
    return None if value is None else whole(value, what, most)


def name(value: object, what: str, most: int) -> str:
    """A text of printable characters.

    Raises:
        BadPlanError: It is none, or too long.
    """
    if not isinstance(value, str) or len(value) > most or not value.isprintable():
        raise BadPlanError(
            f"{what} is {shown(value)}, expected at most {most} printable characters"
        )
    return value


def binary(value: object, what: str, most: int) -> bytes:
    """Bytes as hexadecimal text of lower case.

    Raises:
        BadPlanError: It is none, or too long.
    """
    if not isinstance(value, str) or len(value) > 2 * most:
        raise BadPlanError(f"{what} is {shown(value)}, expected at most {most} bytes")
    try:
        data = bytes.fromhex(value)
    except ValueError:
        data = b""
    if data.hex() != value:
        raise BadPlanError(f"{what} is {shown(value)}, expected hexadecimal digits")
    return data


def several(
    value: object, what: str, most: int, read: Callable[[object, str], Item]
) -> tuple[Item, ...]:
    """A list of at most so many items, each read by a function that takes its name for errors.

    Raises:
        BadPlanError: It is none, or an item is malformed.
    """
    if not isinstance(value, list) or len(value) > most:
        given = f"a list of {len(value)}" if isinstance(value, list) else shown(value)
        raise BadPlanError(f"{what} is {given}, expected a list of at most {most}")
    return tuple(read(item, f"{what}[{number}]") for number, item in enumerate(value))
