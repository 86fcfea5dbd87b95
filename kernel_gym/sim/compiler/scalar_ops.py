"""Decodes scalar (SALU, SMEM) instructions and control flow."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernel_gym.sim.asm.errors import UnsupportedInstruction
from kernel_gym.sim.asm.operands import (
    SCALAR_CONSTANTS,
    OperandText,
    literal32,
    literal64,
    parse_operand,
)
from kernel_gym.sim.asm.text import Instruction
from kernel_gym.sim.compiler.mode_ops import emit_getreg, emit_index, emit_setreg
from kernel_gym.sim.compiler.program import NONE, SCALAR, OperationRecord, ProgramBuilder, Source

# Instructions without an effect, because loads complete at once.
IGNORED = frozenset(
    {
        "s_nop",
        "s_waitcnt",
        "s_setprio",
        "s_sleep",
        "s_sethalt",
        "s_clause",
        "s_inst_prefetch",
        "s_icache_inv",
        "s_dcache_inv",
        "s_dcache_wb",
        "s_dcache_inv_vol",
        "s_dcache_wb_vol",
        "s_sendmsg",
        "s_code_end",
        "s_incperflevel",
        "s_decperflevel",
        "s_ttracedata",
        "s_endpgm_saved",
        "s_wakeup",
        "v_nop",
        "buffer_inv",
        "buffer_wbl2",
        "buffer_wbinvl1",
        "buffer_wbinvl1_vol",
        "ds_nop",
    }
)
# Instructions that empty a cache: whether it is the scalar one.
EMPTIES_CACHE = {
    **dict.fromkeys(("buffer_inv", "buffer_wbinvl1", "buffer_wbinvl1_vol"), False),
    **dict.fromkeys(("s_dcache_inv", "s_dcache_inv_vol"), True),
}
# Instructions after which control may be elsewhere. The next one begins a block: `s_swappc_b64` and
# `s_call_b64` return there.
ENDS_BLOCK = frozenset(
    {
        "s_branch",
        "s_endpgm",
        "s_barrier",
        "s_cbranch_execz",
        "s_cbranch_execnz",
        "s_cbranch_scc0",
        "s_cbranch_scc1",
        "s_cbranch_vccz",
        "s_cbranch_vccnz",
        "s_setpc_b64",
        "s_swappc_b64",
        "s_call_b64",
        "s_trap",
    }
)
_STATE = {
    "s_getreg_b32": emit_getreg,
    **dict.fromkeys(("s_setreg_b32", "s_setreg_imm32_b32"), emit_setreg),
    **{f"s_set_gpr_idx_{action}": emit_index for action in ("on", "off", "idx", "mode")},
}
_WIDE = re.compile(r"_(b|u|i)64$")
_K_FORMS = re.compile(r"^s_(movk|addk|mulk|cmovk|cmpk_\w+)_([iu])32$")
_LITERAL_PLACE = {"lo": 4, "hi": 12}  # bytes after s_getpc_b64 in an address computation
_RELOCATION = re.compile(r"^([\w.$@]+?)@(gotpcrel32|rel32)@(lo|hi)([+-]\d+)?$")
# 64-bit operations with a 32-bit source, or the reverse: widths of (destination, sources...)
_MIXED_WIDTHS = {
    "s_lshl_b64": (2, 2, 1),
    "s_lshr_b64": (2, 2, 1),
    "s_ashr_i64": (2, 2, 1),
    "s_bfe_u64": (2, 2, 1),
    "s_bfe_i64": (2, 2, 1),
    "s_bfm_b64": (2, 1, 1),
    "s_bcnt1_i32_b64": (1, 2),
    "s_bcnt0_i32_b64": (1, 2),
    "s_ff1_i32_b64": (1, 2),
    "s_ff0_i32_b64": (1, 2),
    "s_flbit_i32_b64": (1, 2),
    "s_flbit_i32_i64": (1, 2),
    "s_bitreplicate_b64_b32": (2, 1),
    "s_bitcmp0_b64": (0, 2, 1),
    "s_bitcmp1_b64": (0, 2, 1),
    "s_bitset0_b64": (2, 1),
    "s_bitset1_b64": (2, 1),
}


@dataclass
class CodeReference:
    """A literal that depends on the address of a symbol.

    Attributes:
        constant: Scalar constant to fill in.
        symbol: Function or data object.
        through_table: Whether it is the address of a pointer to the symbol.
        origin: Record after ``s_getpc_b64``, where the distance starts.
        high: Whether it is the upper 32 bits.
        offset: Bytes after the symbol.
    """

    constant: int
    symbol: str
    through_table: bool
    origin: int
    high: bool
    offset: int


class ScalarDecoder:
    """Decodes the scalar instructions of one kernel into a program builder.

    Attributes:
        branches: Records whose target is a label still to be resolved.
        references: Literals to fill in once addresses are known.
    """

    def __init__(self, builder: ProgramBuilder) -> None:
        """Decode into the given builder."""
        self._builder = builder
        self._origin: int | None = None
        self.branches: list[tuple[OperationRecord, str, Instruction]] = []
        self.references: list[CodeReference] = []

    def decode(self, instruction: Instruction) -> None:
        """Append the operations of a scalar instruction.

        Raises:
            UnsupportedInstruction: If the operation or an operand is unknown.
        """
        mnemonic = instruction.mnemonic
        if mnemonic == "s_branch" or mnemonic.startswith("s_cbranch_"):
            record = self._builder.emit(mnemonic)
            self.branches.append((record, instruction.operands[0], instruction))
        elif mnemonic.startswith(("s_load_dword", "s_buffer_load_dword", "s_scratch_load_dword")):
            self._load(instruction)
        elif mnemonic in ("s_endpgm", "s_barrier", "s_trap"):
            self._builder.emit(mnemonic)
        elif mnemonic in ("s_memtime", "s_memrealtime"):
            self._builder.emit("s_memtime", dst=parse_operand(instruction.operands[0]).index)
        elif mnemonic in _STATE:
            _STATE[mnemonic](self._builder, instruction)
        elif mnemonic == "s_call_b64":
            record = self._builder.emit(mnemonic, dst=self._destination(instruction.operands[0]))
            self.branches.append((record, instruction.operands[1], instruction))
        elif mnemonic in ("s_getpc_b64", "s_setpc_b64", "s_swappc_b64"):
            self._program_counter(instruction)
        elif _K_FORMS.match(mnemonic):
            self._with_short_literal(instruction)
        else:
            self._arithmetic(instruction)

    def source(self, operand: OperandText, width: int, kind: str = "b32") -> Source:
        """Resolve a scalar source of one or two words."""
        if operand.kind == "s":
            return Source(operand.index, SCALAR)
        if operand.kind in "if":
            if width == 2:
                value = literal64(operand, "b64")
                return self._builder.scalar_constant(value & 0xFFFFFFFF, value >> 32)
            return self._builder.scalar_constant(literal32(operand, kind))
        relocation = _RELOCATION.match(operand.text)
        if relocation and width == 1 and self._origin is not None:
            return self._reference(relocation)
        raise UnsupportedInstruction(f"operand {operand.text!r} is not supported here")

    def _reference(self, relocation: re.Match[str]) -> Source:
        symbol, kind, part = relocation.group(1, 2, 3)
        assert self._origin is not None
        # A unique key keeps the constant apart from ordinary ones until it is filled in.
        number = len(self._builder.scalar_constants)
        self._builder.scalar_constants.append(0)
        # The addend counts from the literal, which lies after the result of s_getpc_b64.
        offset = int(relocation.group(4) or 0) - _LITERAL_PLACE[part]
        through_table, high = kind == "gotpcrel32", part == "hi"
        self.references.append(
            CodeReference(number, symbol, through_table, self._origin, high, offset)
        )
        return Source(SCALAR_CONSTANTS + number, SCALAR)

    def _destination(self, text: str) -> int:
        operand = parse_operand(text)
        if operand.kind != "s":
            raise UnsupportedInstruction(f"destination {text!r} is not a scalar register")
        return operand.index

    def _arithmetic(self, instruction: Instruction) -> None:
        mnemonic, operands = instruction.mnemonic, instruction.operands
        compares = mnemonic.startswith(("s_cmp_", "s_bitcmp"))
        wide = (
            2 if _WIDE.search(mnemonic) or mnemonic.endswith(("saveexec_b64", "wrexec_b64")) else 1
        )
        widths = _MIXED_WIDTHS.get(mnemonic, (0 if compares else wide, wide, wide))
        texts = operands if compares else operands[1:]
        sources = tuple(
            self.source(parse_operand(text), width)
            for text, width in zip(texts, widths[1:], strict=False)
        )
        dst = 0 if compares else self._destination(operands[0])
        self._builder.emit(mnemonic, dst=dst, sources=sources)

    def _with_short_literal(self, instruction: Instruction) -> None:
        """Decodes a form with a 16-bit literal as the general operation."""
        match = _K_FORMS.match(instruction.mnemonic)
        assert match
        register = parse_operand(instruction.operands[0])
        value = int(parse_operand(instruction.operands[1]).value) & 0xFFFF
        signed = match.group(2) == "i"
        if signed and value & 0x8000:
            value -= 0x10000
        constant = self._builder.scalar_constant(value & 0xFFFFFFFF)
        own = Source(register.index, SCALAR)
        form = match.group(1)
        if form in ("movk", "cmovk"):
            name = "s_mov_b32" if form == "movk" else "s_cmov_b32"
            self._builder.emit(name, dst=register.index, sources=(constant,))
        elif form in ("addk", "mulk"):
            name = "s_add_i32" if form == "addk" else "s_mul_i32"
            self._builder.emit(name, dst=register.index, sources=(own, constant))
        else:
            name = f"s_cmp_{form[len('cmpk_') :]}_{match.group(2)}32"
            self._builder.emit(name, sources=(own, constant))

    def _load(self, instruction: Instruction) -> None:
        mnemonic = instruction.mnemonic
        words = int(mnemonic.split("dwordx")[1]) if "dwordx" in mnemonic else 1
        destination, base, offset = (parse_operand(text) for text in instruction.operands[:3])
        immediate = int(instruction.modifiers.get("offset", "0"), 0)
        register = Source(space=NONE)
        if offset.kind == "i":
            immediate += int(offset.value)
        else:
            register = self.source(offset, 1)
        self._builder.emit(
            "s_load",
            dst=destination.index,
            sources=(Source(base.index, SCALAR), register),
            imm=immediate,
            aux=words,
            flags=int("buffer" in mnemonic),
        )

    def _program_counter(self, instruction: Instruction) -> None:
        mnemonic, operands = instruction.mnemonic, instruction.operands
        if mnemonic == "s_setpc_b64":
            self._builder.emit(mnemonic, sources=(self.source(parse_operand(operands[0]), 2),))
            return
        sources = tuple(self.source(parse_operand(text), 2) for text in operands[1:])
        self._builder.emit(mnemonic, dst=self._destination(operands[0]), sources=sources)
        if mnemonic == "s_getpc_b64":
            self._origin = len(self._builder.records)
