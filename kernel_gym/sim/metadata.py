"""Kernel metadata: the YAML block that the compiler appends for the loader."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class KernelArg:
    """One kernel argument.

    Attributes:
        name: Name in the source, or empty if the compiler dropped it.
        offset: Byte offset in the argument segment.
        size: Bytes.
        value_kind: ``global_buffer``, ``by_value``, ``hidden_block_count_x``, ...
    """

    name: str
    offset: int
    size: int
    value_kind: str

    @property
    def hidden(self) -> bool:
        """Whether the runtime, not the caller, supplies it."""
        return self.value_kind.startswith("hidden_")


@dataclass(frozen=True)
class KernelMetadata:
    """Facts about a kernel: its arguments and named integers such as ``vgpr_count``."""

    args: tuple[KernelArg, ...]
    values: dict[str, int]


_NUMBER = re.compile(r"^\s*\.(\w+):\s+(\d+)\s*$", re.MULTILINE)
_NAME = re.compile(r"^\s*\.symbol:\s+['\"]?([^'\"\s]+?)(?:\.kd)?['\"]?\s*$", re.MULTILINE)
_FIELD = re.compile(r"\.(\w+):\s+(\S+)")


def _read_arg(text: str) -> KernelArg:
    fields = dict(_FIELD.findall(text))
    return KernelArg(
        name=fields.get("name", ""),
        offset=int(fields.get("offset", 0)),
        size=int(fields.get("size", 0)),
        value_kind=fields.get("value_kind", "by_value"),
    )


def read_metadata(text: str) -> dict[str, KernelMetadata]:
    """Read the ``.amdgpu_metadata`` block.

    Args:
        text: The block, without its first directive; may be empty.

    Returns:
        Kernel name to metadata.
    """
    _, _, kernels = text.partition("amdhsa.kernels:")
    result = {}
    for block in re.split(r"\n  - ", kernels)[1:]:
        name = _NAME.search(block)
        if not name:
            continue
        args_text = re.search(r"\.args:\s*\n((?:      .*\n)*)", block)
        items = re.split(r"\n?      - ", args_text.group(1))[1:] if args_text else []
        values = {key: int(value) for key, value in _NUMBER.findall(block)}
        result[name.group(1)] = KernelMetadata(tuple(map(_read_arg, items)), values)
    return result
