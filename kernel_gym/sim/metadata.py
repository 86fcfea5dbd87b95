"""Kernel metadata: the YAML block that the compiler appends for the loader."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernel_gym.sim.errors import AsmError


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


# Arguments by which a kernel talks to a thread of the host, which is not simulated.
_HOST_CALLS = ("hidden_hostcall_buffer", "hidden_printf_buffer")


def refuse_host_calls(kernel: str, metadata: KernelMetadata | None) -> None:
    """A kernel that prints would wait for ever for the host to take its text.

    Raises:
        AsmError: It has an argument for that.
    """
    kinds = {arg.value_kind for arg in metadata.args} if metadata else set()
    used = ", ".join(kind for kind in _HOST_CALLS if kind in kinds)
    if used:
        raise AsmError(
            f"kernel {kernel} calls the host ({used}), which is not simulated: "
            "take out device_print, printf and assert"
        )


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
