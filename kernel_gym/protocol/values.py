"""Parsers of the fields of requests: each bounds a JSON value and converts it to its type.

The messages of errors are inert and short, whatever the value is. Nothing here needs PyTorch.
"""

from __future__ import annotations

from kernel_gym.inert import inert_line, shown
from kernel_gym.protocol.request import BadRequestError, Parser, Value

MAX_NAME = 4096
"""Most characters of a symbol; C++ compilers make long ones."""
MAX_ARGUMENTS = 1 << 16
"""Most bytes of the arguments of a launch, and most entries of a list of numbers."""
_LARGEST = 1 << 62


def whole(value: object, what: str) -> int:
    """A count, size or address.

    Raises:
        BadRequestError: The value is no integer from 0 to 2^62.
    """
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise BadRequestError(f"{what} is {shown(value)}, expected a whole number from 0")
    return value


def integer(value: object, what: str) -> int:
    """Any integer; for seeds.

    Raises:
        BadRequestError: The value is no integer.
    """
    if type(value) is not int:
        raise BadRequestError(f"{what} is {shown(value)}, expected an integer")
    return value


def truth(value: object, what: str) -> bool:
    """True or false.

    Raises:
        BadRequestError: The value is neither.
    """
    if type(value) is not bool:
        raise BadRequestError(f"{what} is {shown(value)}, expected true or false")
    return value


def number(value: object, what: str) -> float | int | bool:
    """A value that a tensor can be filled with.

    Raises:
        BadRequestError: The value is no number, or an integer beyond 2^64.
    """
    if not isinstance(value, int | float) or type(value) not in (int, float, bool):
        raise BadRequestError(f"{what} is {shown(value)}, expected a number")
    if type(value) is int and abs(value) > 1 << 64:
        raise BadRequestError(f"{what} is {shown(value)}, expected a number")
    return value


def text(value: object, what: str) -> str:
    """A text of any length, between processes that trust the sender's size.

    Raises:
        BadRequestError: The value is no text.
    """
    if not isinstance(value, str):
        raise BadRequestError(f"{what} is {shown(value)}, expected text")
    return value


def symbol(value: object, what: str) -> str:
    """The name of a kernel or a variable.

    Raises:
        BadRequestError: The value is no text, or longer than `MAX_NAME`.
    """
    if not isinstance(value, str) or len(value) > MAX_NAME:
        raise BadRequestError(f"{what} is {shown(value)}, expected at most {MAX_NAME} characters")
    return value


def label(value: object, what: str) -> str:
    """One inert line of at most 120 characters.

    Raises:
        BadRequestError: The value is no text.
    """
    return inert_line(text(value, what), 120)


def wholes(value: object, what: str, most: int = MAX_ARGUMENTS) -> list[int]:
    """Counts, sizes or addresses.

    Raises:
        BadRequestError: The value is no list, too long, or an entry is no whole number.
    """
    if not isinstance(value, list) or len(value) > most:
        raise BadRequestError(f"{what} is {shown(value)}, expected a list of at most {most}")
    return [whole(item, what) for item in value]


def three(value: object, what: str) -> tuple[int, int, int]:
    """The sizes of a grid or of a block.

    Raises:
        BadRequestError: The value is no list of three whole numbers.
    """
    sizes = wholes(value, what, most=3)
    if len(sizes) != 3:
        raise BadRequestError(f"invalid launch: {what} {sizes}, expected three sizes")
    return sizes[0], sizes[1], sizes[2]


def or_none(parser: Parser[Value]) -> Parser[Value | None]:
    """A parser of the same values and of `None`."""
    return lambda value, what: None if value is None else parser(value, what)


def listed(parser: Parser[Value]) -> Parser[list[Value]]:
    """A parser of lists of any length, whose entries another parser reads."""

    def read(value: object, what: str) -> list[Value]:
        if not isinstance(value, list):
            raise BadRequestError(f"{what} is {shown(value)}, expected a list")
        return [parser(item, what) for item in value]

    return read


def texts_by_name(value: object, what: str) -> dict[str, str]:
    """A JSON object of texts.

    Raises:
        BadRequestError: The value is no object, or an entry is no text.
    """
    return {
        name: text(entry, f"{what}: {name[:40]}") for name, entry in mapping(value, what).items()
    }


def anything(value: object, what: str) -> object:
    """Any JSON value, for a reader that checks it itself."""
    return value


def mapping(value: object, what: str) -> dict[str, object]:
    """A JSON object with any content.

    Raises:
        BadRequestError: The value is no object.
    """
    if not isinstance(value, dict):
        raise BadRequestError(f"{what} is {shown(value)}, expected an object")
    return value
