"""Resolves the sources of vector instructions: registers, literals and source modifiers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernel_gym.sim.asm.errors import UnsupportedInstruction
from kernel_gym.sim.asm.operands import OperandText, literal32, literal64
from kernel_gym.sim.asm.signatures import HALF, WIDE, Signature
from kernel_gym.sim.asm.text import Instruction
from kernel_gym.sim.compiler.program import (
    ABS16,
    ABS32,
    CONSTANT,
    FROM_HALF,
    HIGH_FROM_HIGH,
    LOW_FROM_HIGH,
    MODIFIED,
    NEG16,
    NEG32,
    SCALAR,
    SELECT,
    SIGN_EXTEND,
    SWIZZLE,
    VECTOR,
    ProgramBuilder,
    Source,
)

# For these, op_sel selects the half of the result.
_SELECTS_RESULT = ("v_cvt_pk_fp8", "v_cvt_pk_bf8", "v_cvt_sr", "v_ashr_pk")


def bits_of(modifiers: dict[str, str], name: str, default: int, count: int) -> list[int]:
    """The list in a modifier such as ``op_sel:[0,1]``, extended with the default."""
    text = modifiers.get(name)
    values = [int(x) for x in re.findall(r"\d", text)] if text else []
    return values + [default] * (count - len(values))


class VectorSources:
    """Turns operand texts of vector instructions into sources of a program builder."""

    def __init__(self, builder: ProgramBuilder) -> None:
        """Resolve for the given builder."""
        self._builder = builder

    def source(self, operand: OperandText, kind: str, flags: int = 0) -> Source:
        """Resolve a vector source with the modifiers written in its text."""
        builder = self._builder
        flags |= self._sign_flags(operand, kind)
        if operand.is_vector:
            space, index = VECTOR, builder.row(operand.kind, operand.index)
        elif operand.kind == "s":
            space, index = SCALAR, operand.index
        elif operand.kind in "if":
            constant = self._constant(operand, kind)
            space, index = CONSTANT, constant.index
        else:
            raise UnsupportedInstruction(f"operand {operand.text!r} is not supported here")
        return Source(index, space | (MODIFIED if flags else 0), flags)

    def _constant(self, operand: OperandText, kind: str) -> Source:
        if kind in WIDE:
            value = literal64(operand, kind)
            return self._builder.vector_constant(value & 0xFFFFFFFF, value >> 32)
        if kind == "pk_f32":  # a constant fills both halves, for every op_sel_hi
            return self._builder.vector_constant(*[literal32(operand, "f32")] * 2)
        return self._builder.vector_constant(literal32(operand, kind))

    @staticmethod
    def _sign_flags(operand: OperandText, kind: str) -> int:
        half = kind in HALF
        flags = 0
        if operand.abs:
            flags |= ABS16 if half else ABS32
        if operand.neg:
            flags |= NEG16 if half else NEG32
        return flags

    def _packed_flags(self, modifiers: dict[str, str], i: int) -> int:
        low = bits_of(modifiers, "op_sel", 0, 3)[i]
        high = bits_of(modifiers, "op_sel_hi", 1, 3)[i]
        flags = 0
        if (low, high) != (0, 1):
            flags |= SWIZZLE
        if bits_of(modifiers, "neg_lo", 0, 3)[i]:
            flags |= NEG16
        if bits_of(modifiers, "neg_hi", 0, 3)[i]:
            flags |= NEG32
        if flags:
            flags |= (LOW_FROM_HIGH if low else 0) | (HIGH_FROM_HIGH if high else 0)
            flags |= SWIZZLE
        return flags

    def _sources(
        self, instruction: Instruction, types: Signature, operands: Sequence[OperandText]
    ) -> list[Source]:
        modifiers = instruction.modifiers
        mix = "_mix" in instruction.mnemonic
        result = []
        for i, operand in enumerate(operands):
            kind = types.source(i)
            if kind == "mask":
                result.append(self._mask(operand))
            elif mix:
                result.append(self._mix_source(operand, modifiers, i))
            elif kind == "pk_f32":
                result.append(self._pair_source(instruction, operand, i))
            elif kind in ("pk_f16", "pk_b16"):
                result.append(self.source(operand, kind, self._packed_flags(modifiers, i)))
            else:
                result.append(self.source(operand, kind, self._part_flags(instruction, operand, i)))
        return result

    def _part_flags(self, instruction: Instruction, operand: OperandText, i: int) -> int:
        """Flags of SDWA selections, and of op_sel on 16-bit sources."""
        modifiers = instruction.modifiers
        if instruction.encoding == "sdwa":
            flags = SELECT[modifiers.get(f"src{i}_sel", "DWORD")]
            return flags | (SIGN_EXTEND if operand.sext and flags else 0)
        if "op_sel" in modifiers and not instruction.mnemonic.startswith(_SELECTS_RESULT):
            return SELECT["WORD_1"] if bits_of(modifiers, "op_sel", 0, 4)[i] else 0
        return 0

    def _pair_source(self, instruction: Instruction, operand: OperandText, i: int) -> Source:
        """A source of a packed f32 operation: the flags choose registers, not halves."""
        modifiers = instruction.modifiers
        low = bits_of(modifiers, "op_sel", 0, 3)[i]
        high = bits_of(modifiers, "op_sel_hi", 1, 3)[i]
        if instruction.mnemonic == "v_pk_mov_b32":
            high = low  # each source supplies one half of the result
        flags = (LOW_FROM_HIGH if low else 0) | (HIGH_FROM_HIGH if high else 0)
        flags |= NEG16 if bits_of(modifiers, "neg_lo", 0, 3)[i] else 0
        flags |= NEG32 if bits_of(modifiers, "neg_hi", 0, 3)[i] else 0
        source = self.source(operand, "pk_f32")
        return Source(source.index, source.space & ~MODIFIED, flags)

    def _mix_source(self, operand: OperandText, modifiers: dict[str, str], i: int) -> Source:
        """A source of v_fma_mix: op_sel_hi marks it as f16, op_sel selects the half."""
        is_half = bits_of(modifiers, "op_sel_hi", 0, 3)[i]
        flags = self._sign_flags(operand, "f32")
        if is_half:
            flags |= FROM_HALF
            if bits_of(modifiers, "op_sel", 0, 3)[i]:
                flags |= SELECT["WORD_1"]
        return self.source(operand, "f16" if is_half and operand.kind == "f" else "f32", flags)

    def _mask(self, operand: OperandText) -> Source:
        if operand.kind == "s":
            return Source(operand.index, SCALAR)
        if operand.kind == "i":
            value = literal64(operand, "b64")
            return self._builder.scalar_constant(value & 0xFFFFFFFF, value >> 32)
        raise UnsupportedInstruction(f"operand {operand.text!r} is not a lane mask")
