"""Kernel metadata: what the compiler states for the loader, as text or in a code object."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from kernel_gym.sim.asm.errors import AsmError


@dataclass(frozen=True)
class KernelArg:
    """One kernel argument.

    Attributes:
        name: Name in the source, or empty if the compiler dropped it.
        offset: Byte offset in the argument segment.
        size: Bytes.
        value_kind: such as ``global_buffer``, ``by_value`` or ``hidden_block_count_x``.
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


# Patterns for one line without its indentation.
_NUMBER = re.compile(r"\.(\w+):\s+(\d{1,18})$")
_NAME = re.compile(r"\.symbol:\s+['\"]?([^'\"\s]+?)(?:\.kd)?['\"]?$")
_FIELD = re.compile(r"\.(\w+):\s+(\S+)")
_MAX_NUMBER = 1 << 60
_MAX_LINE = 8192
"""Lines with more characters are skipped. C++ names are long."""


# Arguments for calls of a host thread. Compilers also list the first one for kernels with
# operations that they do not know well, such as asynchronous loads of gfx950.
_WITH_INTERRUPT = "hidden_hostcall_buffer"
_HOST_CALLS = (_WITH_INTERRUPT, "hidden_printf_buffer")


def refuse_host_calls(
    kernel: str,
    metadata: KernelMetadata | None,
    interrupts: bool,
    served: Collection[str] = (),
) -> None:
    """Refuses a kernel that calls the host, for example to print, if nobody serves the call.

    Args:
        kernel: Its name.
        metadata: Its metadata.
        interrupts: Whether any code of its module interrupts the host, as each host call does.
        served: Kinds of arguments for calls that are served.

    Raises:
        AsmError: If the kernel has another argument for such calls. It would wait forever.
    """
    kinds = {arg.value_kind for arg in metadata.args} if metadata else set()
    if not interrupts:
        kinds.discard(_WITH_INTERRUPT)
    used = ", ".join(kind for kind in _HOST_CALLS if kind in kinds and kind not in served)
    if used:
        raise AsmError(
            f"kernel {kernel} calls the host ({used}), which is not simulated: "
            "take out device_print, printf and assert"
        )


def _read_arg(lines: Sequence[str]) -> KernelArg:
    fields: dict[str, str] = {}
    for line in lines:
        fields.update(_FIELD.findall(line))
    return KernelArg(
        name=fields.get("name", ""),
        offset=int(fields.get("offset", 0)),
        size=int(fields.get("size", 0)),
        value_kind=fields.get("value_kind", "by_value"),
    )


def read_metadata(text: str) -> dict[str, KernelMetadata]:
    """Read the ``.amdgpu_metadata`` block, in time linear in its length.

    Args:
        text: The block, without its first directive; may be empty.

    Returns:
        Kernel name to metadata.
    """
    _, _, kernels = text.partition("amdhsa.kernels:")
    result = {}
    for block in kernels.split("\n  - ")[1:]:
        lines = [line for line in block.split("\n") if 0 < len(line) <= _MAX_LINE]
        stripped = [line.strip() for line in lines]
        name = next(filter(None, map(_NAME.match, stripped)), None)
        if name:
            values = {m[1]: int(m[2]) for m in map(_NUMBER.match, stripped) if m}
            result[name[1]] = KernelMetadata(tuple(map(_read_arg, _items(lines))), values)
    return result


def _items(lines: Sequence[str]) -> list[list[str]]:
    """The lines of each argument: those below ``.args:`` that are indented further."""
    items: list[list[str]] = []
    starts = (i for i, line in enumerate(lines) if line.strip() == ".args:")
    for line in lines[next(starts, len(lines)) + 1 :]:
        if not line.startswith("      "):
            break
        if line.startswith("      - "):
            items.append([line[8:]])
        elif items:
            items[-1].append(line)
    return items


def read_note(content: bytes) -> tuple[str, dict[str, KernelMetadata]]:
    """Reads the note of a code object, which has the block in the form of MessagePack.

    Returns:
        The target, and kernel name to metadata.

    Raises:
        AsmError: It does not have the form of metadata.
    """
    try:
        note = msgpack.unpackb(content, strict_map_key=False)
        kernels = note.get("amdhsa.kernels", [])
        target = str(note.get("amdhsa.target", ""))
        return target, {
            str(kernel[".symbol"]).removesuffix(".kd"): _kernel_of_note(kernel)
            for kernel in kernels
        }
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise AsmError(f"the metadata of the code object is damaged: {error!r}"[:300]) from None


def _kernel_of_note(kernel: Mapping[str, Any]) -> KernelMetadata:
    args = tuple(
        KernelArg(
            name=str(arg.get(".name", "")),
            offset=_number(arg[".offset"]),
            size=_number(arg[".size"]),
            value_kind=str(arg[".value_kind"]),
        )
        for arg in kernel.get(".args", [])
    )
    values = {str(key).removeprefix("."): value for key, value in kernel.items()}
    return KernelMetadata(args, {k: _number(v) for k, v in values.items() if type(v) is int})


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < _MAX_NUMBER:
        raise ValueError(f"{value!r:.40}, expected a number below 2^60")
    return value
