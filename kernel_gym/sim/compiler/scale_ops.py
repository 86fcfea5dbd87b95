"""Decodes conversions with a scale (``v_cvt_scalef32_*`` of gfx950)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kernel_gym.sim.compiler.program import NO_SOURCE, ProgramBuilder, Source

# Formats of the engine (csrc/ops/small_float.h, csrc/ops/vops_small.cpp) and their bits.
_FORMATS = {"fp8": 2, "bf8": 3, "fp6": 4, "bf6": 5, "fp4": 6, "f32": 8, "f16": 9, "bf16": 10}
_BITS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4, "f32": 32, "f16": 16, "bf16": 16}
_COUNTS = {"": 1, "pk_": 2, "pk32_": 32, "2xpk16_": 32}
_NAME = re.compile(r"^v_cvt_scalef32_(sr_)?(2xpk16_|pk32_|pk_|)([a-z]+\d+)_([a-z]+\d+)$")
_STOCHASTIC = 1 << 16


@dataclass(frozen=True)
class ScaledConversion:
    """A scaled conversion.

    Attributes:
        immediate: Formats and count, encoded for the engine.
        data: Number of operands with data. A random and a scale operand follow.
        stochastic: Whether random bits decide the rounding.
        source_bits: Bits of the part of the source that ``op_sel`` selects; 0: the whole source.
        destination_bits: Bits of the part of the destination that ``op_sel`` selects; 0: all.
    """

    immediate: int
    data: int
    stochastic: bool
    source_bits: int
    destination_bits: int

    def source_offset(self, selection: list[int]) -> int:
        """Bit offset in the source."""
        if self.source_bits == 8:
            return 8 * (selection[0] + 2 * selection[1])
        return 16 * selection[0] if self.source_bits else 0

    def destination_offset(self, selection: list[int]) -> int:
        """Bit offset in the destination, by bits 2 and 3 of the selection."""
        if self.destination_bits == 8:
            return 8 * (selection[2] + 2 * selection[3])
        return 16 * selection[3] if self.destination_bits else 0


@lru_cache(maxsize=4096)
def scaled_conversion(mnemonic: str) -> ScaledConversion | None:
    """The conversion named by a mnemonic, or None if it is not one."""
    match = _NAME.match(mnemonic)
    if not match:
        return None
    stochastic, packing, to, source = match.groups()
    if to not in _FORMATS or source not in _FORMATS:
        return None
    count = _COUNTS[packing]
    pairs_of_registers = (packing == "pk_" and source == "f32" and not stochastic) or (
        packing == "2xpk16_"
    )
    immediate = _FORMATS[source] | _FORMATS[to] << 4 | count << 8
    source_bits, destination_bits = count * _BITS[source], count * _BITS[to]
    return ScaledConversion(
        immediate | (_STOCHASTIC if stochastic else 0),
        2 if pairs_of_registers else 1,
        bool(stochastic),
        source_bits if _BITS[source] <= 8 and source_bits < 32 else 0,
        destination_bits if destination_bits < 32 else 0,
    )


def selection_bits(values: list[int], sources: int, narrow: bool) -> list[int]:
    """The four bits of the instruction that an ``op_sel`` list stands for.

    Args:
        values: The list, as written.
        sources: Operands that are read.
        narrow: Whether the list names bit 2 (conversions to pairs of 4 bits).
    """
    values = values + [0] * (4 - len(values))
    if sources == 2 and not narrow:
        return [values[0], values[1], 0, values[2]]
    return values


def emit_scaled(
    builder: ProgramBuilder,
    conversion: ScaledConversion,
    dst: int,
    sources: Sequence[Source],
    selection: list[int],
) -> None:
    """Append a scaled conversion.

    Args:
        builder: Receives the operation.
        conversion: The conversion.
        dst: Row of the destination.
        sources: Its operands in order.
        selection: The values of ``op_sel``.
    """
    data = list(sources[: conversion.data])
    random = sources[conversion.data] if conversion.stochastic else NO_SOURCE
    narrow = conversion.destination_bits == 8 and not conversion.source_bits
    bits = selection_bits(selection, len(sources), narrow)
    builder.emit(
        "scale_convert",
        dst=dst,
        sources=(data[0], data[1] if len(data) > 1 else NO_SOURCE, random, sources[-1]),
        imm=conversion.immediate,
        aux=conversion.source_offset(bits),
        flags=conversion.destination_offset(bits),
    )
