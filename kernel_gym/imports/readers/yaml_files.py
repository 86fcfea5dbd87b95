"""YAML files of checkouts and run folders, which others wrote."""

from __future__ import annotations

from pathlib import Path

import yaml

from kernel_gym.imports.readers.base import CheckoutError, read_text
from kernel_gym.inert import inert_line

MAX_CHARACTERS = 4 << 20
"""Most characters of one file."""
MAX_VALUES = 100_000
"""Most values of one file. A value that is referred to counts each time: references to lists of
references make a short file very large as text."""

_NO_YAML = (yaml.YAMLError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of PyYAML. It leaves those of a date, a number or a flag that is none as they are."""


def read_keys(folder: Path, name: str) -> dict[str, object]:
    """Returns the values of a YAML file by key.

    Args:
        folder: The folder, out of which no link may lead.
        name: The path of the file in it.

    Raises:
        CheckoutError: The file cannot be read, is no YAML, has no keys or is too large.
    """
    text = read_text(folder, name)
    if len(text) > MAX_CHARACTERS:
        raise CheckoutError(f"{name}: found more than {MAX_CHARACTERS} characters")
    try:
        value = yaml.safe_load(text)
    except _NO_YAML as error:
        raise CheckoutError(f"{name}: found no YAML: {inert_line(str(error), 200)}") from None
    if not isinstance(value, dict):
        raise CheckoutError(f"{name}: found a {type(value).__name__}, expected keys")
    if not _is_bounded(value):
        raise CheckoutError(f"{name}: found more than {MAX_VALUES} values")
    return value


def _is_bounded(value: object) -> bool:
    """Whether a value has at most `MAX_VALUES` values within it."""
    left, count = [value], 0
    while left and count <= MAX_VALUES:
        inner = left.pop()
        count += 1
        if isinstance(inner, dict):
            left += inner.values()
        elif isinstance(inner, list | tuple | set):
            left += inner
    return not left and count <= MAX_VALUES
