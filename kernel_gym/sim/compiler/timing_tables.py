"""The side table of the timing model: how each instruction occupies a compute unit.

The table has one ``TimedInst`` (layouts.py) for each source instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kernel_gym.sim import constants as hw
from kernel_gym.sim.asm.operands import parse_operand
from kernel_gym.sim.asm.text import Instruction
from kernel_gym.sim.asm.waits import decode_wait, idle_cycles
from kernel_gym.sim.compiler.decode import DecodedKernel
from kernel_gym.sim.compiler.matrix_ops import matrix_shape
from kernel_gym.sim.layout_check import packer
from kernel_gym.sim.layouts import BlockRange, SharingKind, TimedInst, Unit

UNITS = tuple(unit.name.lower() for unit in Unit)
"""Names of the units, by number."""
NO_ROW = NO_LIMIT = 0xFFFF
_LAYOUT = packer(TimedInst)
_BLOCK = packer(BlockRange)
_SLOW = re.compile(r"^v_(exp|log|rcp|rsq|sqrt|sin|cos)_")
_PACKED = re.compile(r"^v_pk_(add|mul|fma)_f(32|16)$")
# Cycles of AMD's matrix instruction calculator. These shapes of earlier generations do not run at
# the full rate.
_SMALL_DEPTH = re.compile(
    r"^v_mfma_[fi]32_(32x32|16x16|4x4)x(?:[24]_\d+b_(?:f16|bf16|i8)$|\d+bf16$)"
)
_SMALL_DEPTH_CYCLES = {"32x32": 64, "16x16": 32, "4x4": 8}
_F64_4X4_CYCLES = 16
SHORT_BYTES = 4
"""Bytes of a short encoding."""
_WIDE_READ = re.compile(r"^ds_read\w*_b(64|128)")
_PERMUTE = re.compile(r"^ds_(b?permute|swizzle)")
_LDS_ATOMIC = re.compile(
    r"^ds_(pk_)?(add|sub|rsub|inc|dec|min|max|and|or|mskor|xor|cmpst|wrxchg)2?(_|st64)"
)
_GLOBAL = re.compile(r"^(global|flat|buffer|tbuffer)_(load|store|atomic)")
_SCALAR_LOAD = re.compile(r"^s_(buffer_)?load_dword")
_SEES_OTHERS = re.compile(r"^(buffer_(inv|wbinv)|s_dcache_(inv|wb)|ds_gws)")
_COHERENT = frozenset({"sc0", "sc1", "glc", "slc", "nt"})
_RETURNS = frozenset({"sc0", "glc"})
_FREE = re.compile(r"^(s_setprio|s_clause|s_endpgm|s_inst_prefetch|buffer_inv|buffer_wbl2)")


def sharing_of(instruction: Instruction) -> SharingKind:
    """How an instruction takes part in the exchange of data between waves."""
    mnemonic, modifiers = instruction.mnemonic, instruction.modifiers
    if _SCALAR_LOAD.match(mnemonic):
        return SharingKind.SHARES_READS
    if _LDS_ATOMIC.match(mnemonic):
        return SharingKind.SHARES_ATOMIC
    if mnemonic.startswith("scratch_"):
        return SharingKind.USES_SCRATCH
    if not _GLOBAL.match(mnemonic):
        return SharingKind(0)
    if "_atomic" in mnemonic:
        returns = SharingKind.SHARES_READS if _RETURNS & modifiers.keys() else SharingKind(0)
        return SharingKind.SHARES_ATOMIC | SharingKind.SHARES_WRITES | returns
    if "_store" in mnemonic:
        return SharingKind.SHARES_WRITES
    passes = SharingKind.PASSES_L1 if _COHERENT & modifiers.keys() else SharingKind(0)
    return SharingKind.SHARES_READS | passes


def can_wait_for_others(instructions: Iterable[Instruction]) -> bool:
    """Whether a kernel has an instruction that lets a workgroup see the writes of another one.

    Such an instruction bypasses the workgroup's own caches (a load or an atomic) or empties them.
    """
    return any(
        _SEES_OTHERS.match(i.mnemonic)
        or (
            _GLOBAL.match(i.mnemonic)
            and "_store" not in i.mnemonic
            and _COHERENT & i.modifiers.keys()
        )
        for i in instructions
    )


@dataclass(frozen=True)
class TimedInstruction:
    """Use of the compute unit by one instruction; see ``TimedInst``."""

    unit: str
    is_store: bool = False
    cycles: int = 0
    vector_memory_limit: int = NO_LIMIT
    local_limit: int = NO_LIMIT
    dst_row: int = 0
    dst_rows: int = 0
    src_rows: tuple[int, ...] = ()
    sharing: int = 0
    gap: int = 0
    lds_banks: int = 0

    def pack(self) -> bytes:
        """The bytes of the C++ struct."""
        rows = (*self.src_rows[:3], NO_ROW, NO_ROW, NO_ROW)[:3]
        return _LAYOUT.pack(
            Unit[self.unit.upper()],
            self.is_store,
            self.cycles,
            self.vector_memory_limit,
            self.local_limit,
            self.dst_row,
            self.dst_rows,
            *rows,
            int(self.sharing),
            self.gap,
            self.lds_banks,
        )


def unit_of(mnemonic: str) -> str:
    """The unit that executes an instruction."""
    for prefix, unit in (
        ("v_mfma", "matrix"),
        ("v_smfmac", "matrix"),
        ("v_", "vector"),
        ("ds_", "lds"),
        ("s_load", "scalar_memory"),
        ("s_buffer_load", "scalar_memory"),
        ("s_scratch_load", "scalar_memory"),
        ("s_waitcnt", "wait"),
        ("s_barrier", "barrier"),
        ("s_branch", "branch"),
        ("s_cbranch", "branch"),
        ("s_setpc", "branch"),
        ("s_swappc", "branch"),
        ("s_nop", "idle"),
        ("s_sleep", "idle"),
    ):
        if mnemonic.startswith(prefix):
            return unit
    if _FREE.match(mnemonic):
        return "free"
    return "scalar" if mnemonic.startswith("s_") else "memory"


def vector_cycles(mnemonic: str) -> int:
    """Cycles a vector instruction holds its SIMD."""
    if _SLOW.match(mnemonic):
        return hw.SLOW_VECTOR_CYCLES
    return hw.VECTOR_CYCLES


def vector_gap(instruction: Instruction) -> int:
    """Cycles until the same wave can issue its next vector instruction."""
    if _PACKED.match(instruction.mnemonic):
        return hw.PACKED_GAP
    return hw.LONG_ENCODING_GAP if instruction.size > SHORT_BYTES else hw.VECTOR_CYCLES


def matrix_cycles(mnemonic: str, figures: hw.Figures) -> int:
    """Cycles a matrix instruction holds its SIMD's matrix unit."""
    old = _SMALL_DEPTH.match(mnemonic)
    if old:
        return _SMALL_DEPTH_CYCLES[old[1]]
    if mnemonic in ("v_mfma_f64_4x4x4_4b_f64", "v_mfma_f64_4x4x4f64"):
        return _F64_4X4_CYCLES
    shape = matrix_shape(mnemonic)
    assert shape
    per_cycle = figures.matrix_operations[shape.type] / hw.SIMDS
    return max(hw.MATRIX_MINIMUM_CYCLES, round(shape.operations / per_cycle))


def lds_banks(mnemonic: str, figures: hw.Figures) -> int:
    """Banks of the LDS that an instruction sees."""
    return figures.wide_read_banks if _WIDE_READ.match(mnemonic) else hw.LDS_BANKS


def _rows(instruction: Instruction, vector_registers: int) -> list[int]:
    """Row numbers of the vector sources."""
    rows = []
    for text in instruction.operands[1:]:
        operand = parse_operand(text)
        if operand.is_vector:
            rows.append(operand.index + (vector_registers if operand.kind == "a" else 0))
        else:
            rows.append(NO_ROW)
    return rows


def timed_instruction(
    instruction: Instruction, vector_registers: int, figures: hw.Figures
) -> TimedInstruction:
    """Classify an instruction.

    Args:
        instruction: The instruction.
        vector_registers: Rows before the accumulation registers.
        figures: Constants of the device.
    """
    mnemonic = instruction.mnemonic
    unit = unit_of(mnemonic)
    if unit == "vector":
        rows = tuple(_rows(instruction, vector_registers)[:3])
        cycles, gap = vector_cycles(mnemonic), vector_gap(instruction)
        return TimedInstruction(unit, cycles=cycles, src_rows=rows, gap=gap)
    if unit == "matrix":
        destination = parse_operand(instruction.operands[0])
        offset = vector_registers if destination.kind == "a" else 0
        return TimedInstruction(
            unit,
            cycles=matrix_cycles(mnemonic, figures),
            dst_row=destination.index + offset,
            dst_rows=destination.count,
            src_rows=tuple(_rows(instruction, vector_registers)[:3]),
        )
    if unit == "wait":
        wait = decode_wait(instruction)
        return TimedInstruction(
            unit,
            vector_memory_limit=NO_LIMIT if wait.vector is None else wait.vector,
            local_limit=NO_LIMIT if wait.local is None else wait.local,
        )
    if unit == "idle":
        return TimedInstruction(unit, cycles=idle_cycles(instruction))
    if unit == "lds":  # the cycles of the others depend on their addresses
        cycles = hw.PERMUTE_CYCLES if _PERMUTE.match(mnemonic) else 0
        return TimedInstruction(
            unit,
            is_store="_write" in mnemonic,
            cycles=cycles,
            sharing=sharing_of(instruction),
            lds_banks=lds_banks(mnemonic, figures),
        )
    sharing = sharing_of(instruction)
    waits = sharing & SharingKind.SHARES_READS or "_load" in mnemonic
    is_store = unit == "memory" and not waits
    return TimedInstruction(unit, is_store=is_store, sharing=sharing)


def timing_tables(decoded: DecodedKernel, figures: hw.Figures) -> tuple[bytes, bytes]:
    """The tables of a kernel: ``TimedInst`` by instruction and ``BlockRange`` by block."""
    registers = decoded.builder.vector_registers
    instructions = b"".join(
        timed_instruction(instruction, registers, figures).pack()
        for instruction in decoded.instructions
    )
    blocks = b"".join(_BLOCK.pack(block.first, block.last) for block in decoded.builder.blocks)
    return instructions, blocks
