"""Decodes matrix (MFMA) instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from kernel_gym.sim.asm import Instruction
from kernel_gym.sim.errors import UnsupportedInstruction
from kernel_gym.sim.operands import OperandText, literal32, literal64, parse_operand
from kernel_gym.sim.program import VECTOR, ProgramBuilder, Source

_NAME = re.compile(r"^v_mfma_[fi]\d+_(\d+)x(\d+)x(\d+)_?(?:(\d+)b_)?([a-z]\w*)$")
# Input types to numbers (enum Type in csrc/mfma.cpp).
TYPES = {
    "f16": 0,
    "bf16": 1,
    "bf16_1k": 1,
    "i8": 2,
    "fp8_fp8": 3,
    "fp8_bf8": 4,
    "bf8_fp8": 5,
    "bf8_bf8": 6,
    "f32": 7,
    "xf32": 8,
    "f64": 9,
}
F64, I8 = 9, 2
# Elements of A in a lane that exist, by type.
_PER_LANE = {0: (4,), 1: (2, 4), 2: (4, 8), 7: (1,), 8: (2,), 9: (1,)}
_PER_LANE |= {fp8: (8,) for fp8 in (3, 4, 5, 6)}


@dataclass(frozen=True)
class MatrixShape:
    """Shape of a matrix instruction: ``blocks`` products of (m, k) by (k, m)."""

    m: int
    k: int
    blocks: int
    type: int

    @property
    def operations(self) -> int:
        """Multiplications and additions of one instruction."""
        return 2 * self.m * self.m * self.k * self.blocks


@cache
def matrix_shape(mnemonic: str) -> MatrixShape | None:
    """The shape named by a mnemonic, or None if it is not a known MFMA."""
    match = _NAME.match(mnemonic)
    if not match or match.group(5) not in TYPES or match.group(1) != match.group(2):
        return None
    m, _, k, blocks = (int(part or 1) for part in match.groups()[:4])
    shape = MatrixShape(m, k, blocks, TYPES[match.group(5)])
    known = m in (4, 16, 32) and k * m * blocks in (64 * n for n in _PER_LANE[shape.type])
    return shape if known else None


class MatrixDecoder:
    """Decodes the matrix instructions of one kernel into a program builder."""

    def __init__(self, builder: ProgramBuilder) -> None:
        """Decode into the given builder."""
        self._builder = builder

    def decode(self, instruction: Instruction) -> None:
        """Append the operation of a matrix instruction.

        Raises:
            UnsupportedInstruction: If the form is not implemented.
        """
        shape = matrix_shape(instruction.mnemonic)
        if shape is None:
            raise UnsupportedInstruction("this matrix form is not implemented")
        destination, a, b, c = (parse_operand(text) for text in instruction.operands[:4])
        name = {F64: "mfma_f64", I8: "mfma_i8"}.get(shape.type, "mfma_float")
        builder = self._builder
        builder.emit(
            name,
            dst=self._rows(destination).index,
            sources=(self._rows(a), self._rows(b), self._addend(c, shape)),
            imm=shape.m | shape.k << 8 | shape.blocks << 16 | shape.type << 24,
            aux=self._broadcast(instruction.modifiers, shape),
        )

    def _rows(self, operand: OperandText) -> Source:
        if not operand.is_vector:
            raise UnsupportedInstruction(f"operand {operand.text!r} is not a vector register")
        return Source(self._builder.row(operand.kind, operand.index), VECTOR)

    def _addend(self, operand: OperandText, shape: MatrixShape) -> Source:
        if operand.is_vector:
            return self._rows(operand)
        if operand.kind not in "if":
            raise UnsupportedInstruction(f"operand {operand.text!r} is not supported here")
        if shape.type == F64:
            value = literal64(operand, "f64")
            return self._builder.vector_constant(value & 0xFFFFFFFF, value >> 32)
        return self._builder.vector_constant(literal32(operand, "f32"))

    @staticmethod
    def _broadcast(modifiers: dict[str, str], shape: MatrixShape) -> int:
        if shape.type == F64:
            signs = re.findall(r"\d", modifiers.get("neg", ""))
            if signs:
                return sum(int(bit) << i for i, bit in enumerate(signs))
            return int(modifiers.get("blgp", "0"), 0)
        fields = [int(modifiers.get(name, "0"), 0) for name in ("cbsz", "abid", "blgp")]
        return fields[0] | fields[1] << 4 | fields[2] << 8
