"""Decodes matrix instructions: dense (MFMA), block-scaled and sparse (SMFMAC)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kernel_gym.sim.asm.errors import UnsupportedInstruction
from kernel_gym.sim.asm.operands import OperandText, literal32, literal64, parse_operand
from kernel_gym.sim.asm.targets import Target
from kernel_gym.sim.asm.text import Instruction
from kernel_gym.sim.compiler.program import CONSTANT, VECTOR, ProgramBuilder, Source
from kernel_gym.sim.layouts import Format, Type

_NAME = re.compile(r"^v_s?mfmac?_(?:scale_)?[fi]\d+_(\d+)x(\d+)x(\d+)_?(?:(\d+)b_)?([a-z]\w*)$")
# Numbers of the input types, by which the timing model looks up rates.
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
    "f8f6f4": 3,
}
# Element types of the engine.
ELEMENTS = {
    **{"f16": Type.F16, "bf16": Type.BF16, "bf16_1k": Type.BF16, "i8": Type.I8},
    **{"f32": Type.F32, "xf32": Type.XF32, "f64": Type.F64},
}
_SMALL = {
    "fnuz": {"fp8": Format.FP8_FNUZ, "bf8": Format.BF8_FNUZ},
    "ocp": {"fp8": Format.FP8, "bf8": Format.BF8},
}
# Formats of f8f6f4 by the values of cbsz (A) and blgp (B), with their registers.
_F8F6F4 = ((Format.FP8, 8), (Format.BF8, 8), (Format.FP6, 6), (Format.BF6, 6), (Format.FP4, 4))
F64, I8 = 9, 2
_B_SCALES_CONSTANT = 1 << 4  # flag of mfma_scaled, see scales_of in csrc/ops/mfma.h
# Products that CDNA2 adds before they meet the sum (flags of mfma_cdna2): bf16 without _1k, others.
_CDNA2_GROUP = {"bf16": 2, "": 4}
# Possible numbers of elements of A in a lane, by type name. A sparse A counts as dense.
_FP8 = tuple(f"{a}_{b}" for a in ("fp8", "bf8") for b in ("fp8", "bf8"))
_PER_LANE = {"f16": (4, 8), "bf16": (2, 4, 8), "bf16_1k": (4,), "i8": (4, 8, 16), "f32": (1,)}
_PER_LANE |= {"xf32": (2,), "f64": (1,), "f8f6f4": (32,), **dict.fromkeys(_FP8, (8,))}
_SPARSE_PER_LANE = {"f16": (8, 16), "bf16": (8, 16), "i8": (16, 32)}
_SPARSE_PER_LANE |= dict.fromkeys(_FP8, (16, 32))


@dataclass(frozen=True)
class MatrixShape:
    """Shape of a matrix instruction: ``blocks`` products of (m, k) by (k, m).

    Attributes:
        m: Rows of A and columns of B.
        k: Columns of A, including those that a sparse A does not store.
        blocks: Independent products.
        type: Input type, a value of :data:`TYPES`.
        sparse: Whether half of A's elements are stored.
    """

    m: int
    k: int
    blocks: int
    type: int
    sparse: bool = False

    @property
    def operations(self) -> int:
        """Multiplications and additions of one instruction."""
        return 2 * self.m * self.m * self.k * self.blocks // (2 if self.sparse else 1)


@lru_cache(maxsize=4096)
def matrix_shape(mnemonic: str) -> MatrixShape | None:
    """The shape named by a mnemonic, or None if it is not a known matrix instruction."""
    match = _NAME.match(mnemonic)
    if not match or match.group(5) not in TYPES or match.group(1) != match.group(2):
        return None
    m, _, k, blocks = (int(part or 1) for part in match.groups()[:4])
    sparse = mnemonic.startswith("v_smfmac")
    name = match.group(5)
    counts = (_SPARSE_PER_LANE if sparse else _PER_LANE).get(name, (0,))
    if match.group(4) is None and k * m not in (64 * n for n in counts):
        blocks = 64 * min(counts) // (k * m)  # older names leave the count of blocks out
    known = m in (4, 16, 32) and k * m * blocks in (64 * n for n in counts)
    return MatrixShape(m, k, blocks, TYPES[name], sparse) if known else None


class MatrixDecoder:
    """Decodes the matrix instructions of one kernel into a program builder."""

    def __init__(self, builder: ProgramBuilder, target: Target, exact: bool = False) -> None:
        """Decode into the given builder.

        Args:
            builder: Receives the operations.
            target: The compilation target.
            exact: Whether sums follow the published order and rounding of the hardware.
        """
        self._builder = builder
        self._target = target
        self._exact = exact

    def decode(self, instruction: Instruction) -> None:
        """Append the operation of a matrix instruction.

        Raises:
            UnsupportedInstruction: If the form is not implemented.
        """
        shape = matrix_shape(instruction.mnemonic)
        if shape is None:
            raise UnsupportedInstruction("this matrix form is not implemented")
        if shape.sparse:
            self._sparse(instruction, shape)
        elif instruction.mnemonic.endswith("_f8f6f4"):
            self._mixed(instruction, shape)
        else:
            self._dense(instruction, shape)

    def _dense(self, instruction: Instruction, shape: MatrixShape) -> None:
        destination, a, b, c = (parse_operand(text) for text in instruction.operands[:4])
        name = {F64: "mfma_f64", I8: "mfma_i8"}.get(shape.type, "mfma_float")
        self._builder.emit(
            self._exact_name(name),
            dst=self._rows(destination).index,
            sources=(self._rows(a), self._rows(b), self._addend(c, shape)),
            imm=self._immediate(shape, *self._elements(instruction.mnemonic)),
            aux=self._broadcast(instruction.modifiers, shape),
            flags=_CDNA2_GROUP["bf16" if instruction.mnemonic.endswith("bf16") else ""],
        )

    def _mixed(self, instruction: Instruction, shape: MatrixShape) -> None:
        """A product of 8-, 6- or 4-bit floats. Modifiers choose the formats."""
        modifiers = instruction.modifiers
        operands = [parse_operand(text) for text in instruction.operands]
        formats = [_F8F6F4[int(modifiers.get(name, "0"), 0)] for name in ("cbsz", "blgp")]
        for operand, (_, registers) in zip(operands[1:3], formats, strict=True):
            if operand.count != registers:
                raise UnsupportedInstruction(
                    f"operand {operand.text!r} has {operand.count} registers, "
                    f"expected {registers} for its format"
                )
        sources = [self._rows(operands[1]), self._rows(operands[2])]
        sources.append(self._addend(operands[3], shape))
        dst2 = flags = 0
        name = "mfma_float"
        if len(operands) > 4:
            name = "mfma_scaled"
            sources.append(self._scale(operands[4]))
            b_scale = self._scale(operands[5])
            dst2 = b_scale.index
            low = re.findall(r"\d", modifiers.get("op_sel", "[0,0]"))
            high = re.findall(r"\d", modifiers.get("op_sel_hi", "[0,0]"))
            bytes_of = [int(low[i]) + 2 * int(high[i]) for i in range(2)]
            flags = bytes_of[0] | bytes_of[1] << 2
            flags |= _B_SCALES_CONSTANT if b_scale.space == CONSTANT else 0
        self._builder.emit(
            self._exact_name(name),
            dst=self._rows(operands[0]).index,
            dst2=dst2,
            sources=tuple(sources),
            imm=self._immediate(shape, formats[0][0], formats[1][0]),
            flags=flags,
        )

    def _sparse(self, instruction: Instruction, shape: MatrixShape) -> None:
        destination, a, b, indices = (parse_operand(text) for text in instruction.operands[:4])
        modifiers = instruction.modifiers
        element_types = self._elements(instruction.mnemonic)
        index_bits = 2 * shape.k * shape.m // 64 // 2  # two for each element that a lane stores
        choice = 0 if int(modifiers.get("cbsz", "0"), 0) else int(modifiers.get("abid", "0"), 0)
        self._builder.emit(
            self._exact_name("smfmac"),
            dst=self._rows(destination).index,
            sources=(self._rows(a), self._rows(b), self._rows(indices)),
            imm=self._immediate(shape, *element_types),
            aux=choice % (32 // index_bits) * index_bits,
        )

    def _exact_name(self, name: str) -> str:
        """The operation that follows the hardware's arithmetic.

        Raises:
            UnsupportedInstruction: If no such rule is published for it.
        """
        if not self._exact or name in ("mfma_f64", "mfma_i8"):
            return name  # fused multiply-adds in order and integers are exact anyway
        if name != "mfma_float" or self._target.matrix_rule is None:
            raise UnsupportedInstruction(
                f"no rule of its accumulation on {self._target.arch} is published: "
                "run without exact matrix arithmetic"
            )
        return f"mfma_{self._target.matrix_rule}"

    def _elements(self, mnemonic: str) -> tuple[int, int]:
        """Element types of A and B."""
        match = _NAME.match(mnemonic)
        assert match
        name = match.group(5)
        if name in ELEMENTS:
            return ELEMENTS[name], ELEMENTS[name]
        if self._target.small_floats is None:
            raise UnsupportedInstruction(f"{self._target.arch} has no 8-bit floats")
        formats = _SMALL[self._target.small_floats]
        first, second = name.split("_")
        return formats[first], formats[second]

    @staticmethod
    def _immediate(shape: MatrixShape, a_type: int, b_type: int) -> int:
        return shape.m | shape.k << 8 | shape.blocks << 16 | a_type << 24 | b_type << 28

    def _rows(self, operand: OperandText) -> Source:
        if not operand.is_vector:
            raise UnsupportedInstruction(f"operand {operand.text!r} is not a vector register")
        return Source(self._builder.row(operand.kind, operand.index), VECTOR)

    def _scale(self, operand: OperandText) -> Source:
        """A register with scale bytes, or the same bytes for every lane."""
        if operand.kind == "i":
            return self._builder.vector_constant(literal32(operand, "b32"))
        return self._rows(operand)

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
