"""Decodes vector (VALU) instructions: operands, source modifiers, result modifiers, DPP, SDWA."""

from __future__ import annotations

import re

from kernel_gym.sim.asm.errors import UnsupportedInstruction
from kernel_gym.sim.asm.operands import OperandText, float_bits, literal32, parse_operand
from kernel_gym.sim.asm.signatures import ALIASES, HALF, Signature, signature
from kernel_gym.sim.asm.targets import Target
from kernel_gym.sim.asm.text import Instruction
from kernel_gym.sim.compiler.mode_ops import INDEXED_DESTINATION, INDEXED_SOURCE, arithmetic_kind
from kernel_gym.sim.compiler.program import (
    MODIFIED,
    SCALAR,
    SELECT,
    VECTOR,
    ProgramBuilder,
    Source,
)
from kernel_gym.sim.compiler.scale_ops import (
    ScaledConversion,
    emit_scaled,
    scaled_conversion,
    selection_bits,
)
from kernel_gym.sim.compiler.vector_sources import VectorSources, bits_of

# Clamp saturates the result of these, as a separate operation, instead of limiting it to [0, 1].
SATURATING = re.compile(r"^v_(pk_)?(add|sub|subrev)_(u32|i32|u16|i16)$")
DPP_CONTROLS = {
    "quad_perm": 0,
    "row_shl": 1,
    "row_shr": 2,
    "row_ror": 3,
    "wave_shl": 4,
    "wave_rol": 5,
    "wave_shr": 6,
    "wave_ror": 7,
    "row_mirror": 8,
    "row_half_mirror": 9,
    "row_bcast": 10,
    "row_newbcast": 12,
}
_SWAPS = ("v_swap_b32", "v_permlane16_swap_b32", "v_permlane32_swap_b32")
_LANE_OPS = ("v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32", *_SWAPS)
_SMALL_FLOATS = re.compile(r"^v_cvt_(pk_|sr_)?(f32_[fb][pf]8|[fb][pf]8_f32)$")
_UNUSED = {"UNUSED_PAD": 0, "UNUSED_SEXT": 1, "UNUSED_PRESERVE": 2}
_KEEP_REST = _UNUSED["UNUSED_PRESERVE"]
_PART = {"BYTE_0": 0, "BYTE_1": 1, "BYTE_2": 2, "BYTE_3": 3, "WORD_0": 4, "WORD_1": 5}
_DPP_ROW, _INDEX_ROW, _RESULT_ROW = 0, 1, 2  # temporary rows; results may take two


class VectorDecoder(VectorSources):
    """Decodes the vector instructions of one kernel into a program builder."""

    def __init__(self, builder: ProgramBuilder, target: Target, modal: bool = False) -> None:
        """Decode into the given builder.

        Args:
            builder: Receives the operations.
            target: The compilation target.
            modal: Whether arithmetic may have to follow another MODE than the default.
        """
        super().__init__(builder)
        self._target = target
        self._modal = modal

    def decode(self, instruction: Instruction) -> None:
        """Append the operations of a vector instruction.

        Raises:
            UnsupportedInstruction: If the operation, an operand or a modifier is unknown.
        """
        kind = arithmetic_kind(instruction.mnemonic) if self._modal else None
        if kind is not None:
            self._builder.emit("mode_begin", imm=kind)
        self._decode(instruction)
        if kind is not None:
            self._builder.emit("mode_end")

    def _decode(self, instruction: Instruction) -> None:
        mnemonic = instruction.mnemonic
        conversion = scaled_conversion(mnemonic)
        if self._builder.indexed:
            self._indexed(instruction)
        elif mnemonic in _LANE_OPS:
            self._lane_op(instruction)
        elif conversion:
            self._scaled(instruction, conversion)
        elif mnemonic.startswith("v_bitop3"):
            self._truth_table(instruction)
        elif mnemonic.startswith("v_cmp"):
            self._compare(instruction)
        elif mnemonic.startswith(("v_fma_mixlo", "v_fma_mixhi", "v_mad_mixlo", "v_mad_mixhi")):
            self._mix_half(instruction)
        else:
            self._operation(instruction)

    # ---- operations
    def _operation(self, instruction: Instruction) -> None:
        mnemonic, modifiers = instruction.mnemonic, instruction.modifiers
        types = signature(mnemonic)
        operands = [parse_operand(text) for text in instruction.operands]
        destination, sources = operands[0], operands[1:]
        if not destination.is_vector:
            raise UnsupportedInstruction(
                f"destination {destination.text!r} is not a vector register"
            )
        carry = 0
        if types.carry_out:
            carry, sources = sources[0].index, sources[1:]
        if types.accumulates:
            sources = [*sources[:2], destination]
        resolved = self._sources(instruction, types, sources)
        name = self._operation_name(mnemonic)
        if "clamp" in modifiers and SATURATING.match(mnemonic):
            name += "_clamp"
        dst = self._builder.row(destination.kind, destination.index)
        finish = self._result_modifiers(instruction, types)
        dpp = instruction.encoding.endswith("dpp")
        if dpp:
            resolved[0] = self._begin_dpp(instruction, resolved[0])
        target = self._builder.temporary(_RESULT_ROW) if finish else dst
        self._builder.emit(name, dst=target, dst2=carry, sources=tuple(resolved))
        for i, (operation, imm, aux) in enumerate(finish):
            last = i == len(finish) - 1
            result = Source(target, VECTOR)
            self._builder.emit(
                operation, dst=dst if last else target, sources=(result,), imm=imm, aux=aux
            )
        if dpp:
            self._builder.emit("dpp_end")

    def _indexed(self, instruction: Instruction) -> None:
        """Decodes a move with a source or destination that M0 indexes."""
        builder = self._builder
        enabled = builder.indexed
        if instruction.mnemonic != "v_mov_b32" or enabled & ~(INDEXED_SOURCE | INDEXED_DESTINATION):
            raise UnsupportedInstruction("only moves can have indexed registers")
        destination, operand = (parse_operand(text) for text in instruction.operands)
        source = self.source(operand, "b32")
        dst = builder.row(destination.kind, destination.index)
        temporary = builder.temporary(_INDEX_ROW)
        registers = builder.vector_registers
        if enabled & INDEXED_SOURCE and operand.is_vector:
            builder.emit("indexed_read", dst=temporary, sources=(source,), aux=registers)
            source = Source(temporary, VECTOR)
        if enabled & INDEXED_DESTINATION:
            result = builder.temporary(_RESULT_ROW)
            builder.emit("v_mov_b32", dst=result, sources=(source,))
            written = (Source(result, VECTOR),)
            builder.emit("indexed_write", dst=dst, sources=written, aux=registers)
        else:
            builder.emit("v_mov_b32", dst=dst, sources=(source,))

    def _operation_name(self, mnemonic: str) -> str:
        if not _SMALL_FLOATS.match(mnemonic):
            return ALIASES.get(mnemonic, mnemonic)
        if self._target.small_floats is None:
            raise UnsupportedInstruction(f"{self._target.arch} has no 8-bit floats")
        return mnemonic + ("_ocp" if self._target.small_floats == "ocp" else "")

    def _scaled(self, instruction: Instruction, conversion: ScaledConversion) -> None:
        operands = [parse_operand(text) for text in instruction.operands]
        last = len(operands) - 2
        sources = [
            self.source(operand, "f32" if i == last else "b32")
            for i, operand in enumerate(operands[1:])
        ]
        dst = self._builder.row(operands[0].kind, operands[0].index)
        selection = bits_of(instruction.modifiers, "op_sel", 0, 0)
        emit_scaled(self._builder, conversion, dst, sources, selection)

    def _truth_table(self, instruction: Instruction) -> None:
        """Decodes v_bitop3. The truth table is a modifier; the 16-bit form selects halves."""
        modifiers = instruction.modifiers
        operands = [parse_operand(text) for text in instruction.operands]
        half = instruction.mnemonic.endswith("b16")
        selection = bits_of(modifiers, "op_sel", 0, 4)
        sources = tuple(
            self.source(operand, "b16" if half else "b32", SELECT["WORD_1"] if selection[i] else 0)
            for i, operand in enumerate(operands[1:])
        )
        dst = self._builder.row(operands[0].kind, operands[0].index)
        high = half and selection[3]
        target = self._builder.temporary(_RESULT_ROW) if high else dst
        table = int(modifiers.get("bitop3", "0"), 0)
        self._builder.emit("v_bitop3_b32", dst=target, sources=sources, imm=table, aux=int(half))
        if high:
            result = (Source(target, VECTOR),)
            self._builder.emit(
                "finish_part", dst=dst, sources=result, imm=_PART["WORD_1"], aux=_KEEP_REST
            )

    def _result_modifiers(
        self, instruction: Instruction, types: Signature
    ) -> list[tuple[str, int, int]]:
        """Operations after the main one: ``(name, imm, aux)``."""
        modifiers, mnemonic = instruction.modifiers, instruction.mnemonic
        finish = []
        clamp = "clamp" in modifiers and not SATURATING.match(mnemonic)
        if clamp or "mul" in modifiers or "div" in modifiers:
            scale = float(modifiers.get("mul", 1)) / float(modifiers.get("div", 1))
            kind = types.destination
            if kind not in ("f32", "f16", "f64", "pk_f16") or (kind == "pk_f16" and scale != 1):
                raise UnsupportedInstruction(f"clamp on {mnemonic} is not supported")
            finish.append((f"finish_{kind}", float_bits(scale, "f32"), int(clamp)))
        if instruction.encoding == "sdwa":
            selected = modifiers.get("dst_sel", "DWORD")
            if selected != "DWORD":
                unused = _UNUSED[modifiers.get("dst_unused", "UNUSED_PAD")]
                finish.append(("finish_part", _PART[selected], unused))
        elif mnemonic.startswith(("v_cvt_pk_fp8", "v_cvt_pk_bf8")):
            high = bits_of(modifiers, "op_sel", 0, 3)[2]
            finish.append(("finish_part", _PART["WORD_1" if high else "WORD_0"], _KEEP_REST))
        elif mnemonic.startswith(("v_cvt_sr_fp8", "v_cvt_sr_bf8")):
            selection = bits_of(modifiers, "op_sel", 0, 4)
            finish.append(("finish_part", selection[2] | selection[3] << 1, _KEEP_REST))
        elif mnemonic.startswith(("v_cvt_sr", "v_ashr_pk")):
            sources = len(instruction.operands) - 1
            selection = selection_bits(bits_of(modifiers, "op_sel", 0, 0), sources, narrow=False)
            finish.append(
                ("finish_part", _PART["WORD_1" if selection[3] else "WORD_0"], _KEEP_REST)
            )
        elif types.destination in HALF and "op_sel" in modifiers:
            selection = bits_of(modifiers, "op_sel", 0, 0)
            if len(selection) == len(instruction.operands) and selection[-1]:
                finish.append(("finish_part", _PART["WORD_1"], _KEEP_REST))
        return finish

    def _begin_dpp(self, instruction: Instruction, source: Source) -> Source:
        modifiers = instruction.modifiers
        name = next((name for name in DPP_CONTROLS if name in modifiers), None)
        if name is None:
            raise UnsupportedInstruction("the DPP control is not supported")
        control, argument = DPP_CONTROLS[name], modifiers[name]
        if name == "quad_perm":
            order = bits_of(modifiers, name, 0, 4)
            value = sum(lane << (2 * i) for i, lane in enumerate(order))
        else:
            value = int(argument, 0) if argument else 0
        if name == "row_bcast":
            control += value == 31
        rows = int(modifiers.get("row_mask", "0xf"), 0)
        banks = int(modifiers.get("bank_mask", "0xf"), 0)
        enabled = sum(banks << (4 * row) for row in range(4) if rows >> row & 1)
        bound = 1 << 16 if "bound_ctrl" in modifiers else 0
        temporary = self._builder.temporary(_DPP_ROW)
        plain = Source(source.index, source.space & ~MODIFIED)
        self._builder.emit(
            "dpp_begin",
            dst=temporary,
            sources=(plain,),
            imm=control | value << 8 | bound,
            aux=enabled,
        )
        return Source(temporary, VECTOR | (source.space & MODIFIED), source.flags)

    def _compare(self, instruction: Instruction) -> None:
        mnemonic = instruction.mnemonic.replace("v_cmpx_", "v_cmp_")
        writes_exec = instruction.mnemonic.startswith("v_cmpx_")
        operands = [parse_operand(text) for text in instruction.operands]
        destination = operands[0]
        if destination.kind != "s":
            raise UnsupportedInstruction(f"destination {destination.text!r} is not a scalar pair")
        relation = mnemonic.split("_")[2]
        name = {"t": "v_cmp_true", "tru": "v_cmp_true", "f": "v_cmp_false"}.get(relation, mnemonic)
        types = signature(mnemonic)
        resolved = self._sources(instruction, types, operands[1:])
        dpp = instruction.encoding.endswith("dpp")
        if dpp:
            resolved[0] = self._begin_dpp(instruction, resolved[0])
        self._builder.emit(
            name, dst=destination.index, sources=tuple(resolved), imm=int(writes_exec)
        )
        if dpp and not writes_exec:  # else EXEC is the result
            self._builder.emit("dpp_end")

    def _mix_half(self, instruction: Instruction) -> None:
        """Decodes v_fma_mixlo_f16 and v_fma_mixhi_f16: an f32 sum, rounded into one half."""
        builder, modifiers = self._builder, instruction.modifiers
        operands = [parse_operand(text) for text in instruction.operands]
        sources = [self._mix_source(op, modifiers, i) for i, op in enumerate(operands[1:])]
        temporary = builder.temporary(_RESULT_ROW)
        result = (Source(temporary, VECTOR),)
        builder.emit("v_fma_f32", dst=temporary, sources=tuple(sources))
        if "clamp" in modifiers:
            builder.emit(
                "finish_f32", dst=temporary, sources=result, imm=float_bits(1.0, "f32"), aux=1
            )
        builder.emit("v_cvt_f16_f32", dst=temporary, sources=result)
        part = _PART["WORD_1" if "mixhi" in instruction.mnemonic else "WORD_0"]
        dst = builder.row(operands[0].kind, operands[0].index)
        builder.emit("finish_part", dst=dst, sources=result, imm=part, aux=_KEEP_REST)

    def _lane_op(self, instruction: Instruction) -> None:
        builder = self._builder
        operands = [parse_operand(text) for text in instruction.operands]
        if instruction.mnemonic == "v_writelane_b32":
            sources = tuple(self._scalar(op) for op in operands[1:3])
            dst = builder.row(operands[0].kind, operands[0].index)
        elif instruction.mnemonic in _SWAPS:
            sources = (self.source(operands[1], "b32"),)
            dst = builder.row(operands[0].kind, operands[0].index)
        else:
            sources = (self.source(operands[1], "b32"), *map(self._scalar, operands[2:3]))
            dst = operands[0].index
        builder.emit(instruction.mnemonic, dst=dst, sources=sources)

    def _scalar(self, operand: OperandText) -> Source:
        if operand.kind == "s":
            return Source(operand.index, SCALAR)
        if operand.kind in "if":
            return self._builder.scalar_constant(literal32(operand, "b32"))
        raise UnsupportedInstruction(f"operand {operand.text!r} is not a scalar")
