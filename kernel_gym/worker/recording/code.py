"""Reads from a module what host code may ask about its kernels, without decoding or assembling it.

A module is an assembler text or a linked code object for an AMD GPU.
"""

from __future__ import annotations

import re

from kernel_gym.sim.asm.elf import CodeObject
from kernel_gym.sim.asm.metadata import KernelMetadata, read_metadata, read_note
from kernel_gym.sim.asm.module import ELF
from kernel_gym.worker.sim.runtime import DeviceAnswer, UnsupportedCodeError

_METADATA = ".amdgpu_metadata"
_METADATA_NOTE = 32
_SIZE = r"^\s*\.size\s+{name}\s*,\s*(\d+)\s*$"


def kernel_names(code: bytes) -> list[str]:
    """Names of the kernels in a module."""
    return list(_metadata(code))


def describe_kernel(code: bytes, name: str | None, shared: int | None) -> DeviceAnswer:
    """Returns the fields of `LoadedKernel` without its number.

    Args:
        code: The module.
        name: The kernel; the first one when it is None.
        shared: Bytes of shared memory that replace those of the module; None for those.

    Raises:
        UnsupportedCodeError: The module has no such kernel.
    """
    kernels = _metadata(code)
    name = name or next(iter(kernels), "")
    if name not in kernels:
        raise UnsupportedCodeError(f"no kernel named {name}, found: {', '.join(kernels)}")
    metadata = kernels[name]
    values = metadata.values
    registers = values.get("vgpr_count", 0)
    return {
        "name": name,
        "args": [(arg.size, arg.value_kind, arg.offset) for arg in metadata.args],
        "registers": registers,
        "spills": values.get("vgpr_spill_count", 0),
        "max_workgroup": values.get("max_flat_workgroup_size", 1024),
        "total_registers": registers,
        "lds": max(values.get("group_segment_fixed_size", 0), shared or 0),
        "scratch": values.get("private_segment_fixed_size", 0),
    }


def variable_size(code: bytes, name: str) -> int | None:
    """Bytes of a device variable of a module; None if it has none of that name."""
    if code.startswith(ELF):
        sizes = {symbol.name: symbol.size for symbol in CodeObject(code).symbols.values()}
        return sizes.get(name)
    pattern = _SIZE.format(name=re.escape(name))
    stated = re.search(pattern, code.decode(errors="replace"), re.MULTILINE)
    return int(stated[1]) if stated else None


def _metadata(code: bytes) -> dict[str, KernelMetadata]:
    if not code.startswith(ELF):
        return read_metadata(code.decode(errors="replace").partition(_METADATA)[2])
    notes = CodeObject(code).notes(b"AMDGPU")
    return read_note(notes[_METADATA_NOTE])[1] if _METADATA_NOTE in notes else {}
