"""The flat program that the C++ engine executes, and a builder for it.

Records have the layout of ``Inst`` (layouts.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_gym.sim.asm.errors import UnsupportedInstruction
from kernel_gym.sim.asm.operands import SCALAR_CONSTANTS
from kernel_gym.sim.layout_check import packer
from kernel_gym.sim.layouts import Inst, OperandFlag, Space
from kernel_gym.sim.native import Handler

LANES = 64  # words in a vector row
TEMPORARY_ROWS = 4  # after the registers: scratch rows of modifier operations

VECTOR, CONSTANT, SCALAR = (int(s) for s in (Space.VECTOR, Space.CONSTANT, Space.SCALAR))
MODIFIED, NONE = int(Space.MODIFIED), int(Space.NONE)

# Operand flags, in the order they are applied (enum OperandFlag).
SELECT = {"BYTE_0": 1, "BYTE_1": 2, "BYTE_2": 3, "BYTE_3": 4, "WORD_0": 5, "WORD_1": 6, "DWORD": 0}
SIGN_EXTEND, SWIZZLE = int(OperandFlag.SIGN_EXTEND), int(OperandFlag.SWIZZLE)
LOW_FROM_HIGH, HIGH_FROM_HIGH = int(OperandFlag.LOW_FROM_HIGH), int(OperandFlag.HIGH_FROM_HIGH)
FROM_HALF = int(OperandFlag.FROM_HALF)
ABS16, ABS32 = int(OperandFlag.ABS16), int(OperandFlag.ABS32)
NEG16, NEG32 = int(OperandFlag.NEG16), int(OperandFlag.NEG32)

_RECORD = packer(Inst)
RECORD_SIZE = _RECORD.size


@dataclass(frozen=True, slots=True)
class Source:
    """A resolved operand: the word offset of a row, or a scalar register number."""

    index: int = 0
    space: int = NONE
    flags: int = 0


NO_SOURCE = Source()


@dataclass(slots=True)
class OperationRecord:
    """One operation of the engine. The handler in csrc/ops defines what its fields mean."""

    handler: int
    dst: int = 0
    dst2: int = 0
    sources: tuple[Source, ...] = ()
    imm: int = 0
    aux: int = 0
    flags: int = 0
    index: int = 0

    def pack(self) -> bytes:
        """The 64 bytes of the C++ struct."""
        fields: list[int] = []
        for i in range(4):
            source = self.sources[i] if i < len(self.sources) else NO_SOURCE
            fields += (source.index, source.space, 0, source.flags)
        return _RECORD.pack(
            self.handler,
            self.dst,
            self.dst2,
            *fields,
            self.imm & 0xFFFFFFFF,
            self.aux & 0xFFFFFFFF,
            self.index,
            self.flags,
        )


@dataclass
class BasicBlock:
    """A basic block: the source instructions ``first`` to ``last`` (exclusive)."""

    first: int
    last: int


@dataclass
class ProgramBuilder:
    """Collects records and constants.

    Attributes:
        handlers: Operations by name, from the engine library.
        vector_registers: Vector registers in use; accumulation registers follow them.
        accumulators: Accumulation registers in use.
        indexed: Operands that M0 indexes at this point (s_set_gpr_idx_on).
    """

    handlers: Mapping[str, Handler]
    vector_registers: int
    accumulators: int
    records: list[OperationRecord] = field(default_factory=list)
    blocks: list[BasicBlock] = field(default_factory=list)
    constant_rows: list[int] = field(default_factory=list)
    scalar_constants: list[int] = field(default_factory=list)
    indexed: int = 0
    index: int = 0  # of the source instruction being decoded
    _rows: dict[tuple[int, ...], int] = field(default_factory=dict)
    _scalars: dict[tuple[int, ...], int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Vector rows that a wave needs."""
        return self.vector_registers + self.accumulators + TEMPORARY_ROWS

    def handler(self, name: str) -> Handler:
        """An operation of the engine.

        Raises:
            UnsupportedInstruction: If the engine has no such operation.
        """
        try:
            return self.handlers[name]
        except KeyError:
            raise UnsupportedInstruction(f"operation {name} is not implemented") from None

    def emit(
        self,
        name: str,
        *,
        dst: int = 0,
        dst2: int = 0,
        sources: tuple[Source, ...] = (),
        imm: int = 0,
        aux: int = 0,
        flags: int = 0,
    ) -> OperationRecord:
        """Append an operation of the current source instruction.

        Raises:
            UnsupportedInstruction: If there is no such operation, or it needs more sources.
        """
        number, needed = self.handler(name)
        if len(sources) < needed:
            raise UnsupportedInstruction(f"found {len(sources)} sources, expected {needed}")
        record = OperationRecord(number, dst, dst2, sources, imm, aux, flags, self.index)
        self.records.append(record)
        return record

    def row(self, kind: str, index: int) -> int:
        """Word offset of a vector (``v``) or accumulation (``a``) register."""
        return LANES * (index + (self.vector_registers if kind == "a" else 0))

    def temporary(self, number: int) -> int:
        """Word offset of a scratch row."""
        return LANES * (self.vector_registers + self.accumulators + number)

    def vector_constant(self, *words: int) -> Source:
        """Rows that hold the given words in every lane."""
        if words not in self._rows:
            self._rows[words] = LANES * len(self.constant_rows)
            self.constant_rows.extend(words)
        return Source(self._rows[words], CONSTANT)

    def scalar_constant(self, *words: int) -> Source:
        """A scalar register (pair) that always holds the given words."""
        if words not in self._scalars:
            self._scalars[words] = SCALAR_CONSTANTS + len(self.scalar_constants)
            self.scalar_constants.extend(words)
        return Source(self._scalars[words], SCALAR)

    def begin_block(self) -> None:
        """Open a basic block at the current source instruction."""
        if self.blocks and self.blocks[-1].first == self.index:
            return
        self.blocks.append(BasicBlock(self.index, self.index))
        self.emit("block_head", imm=len(self.blocks) - 1)

    def code(self) -> bytes:
        """All records as the engine reads them."""
        return b"".join([record.pack() for record in self.records])
