"""Decodes instructions that change later ones: the MODE register and indexed registers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kernel_gym.sim.asm.errors import UnsupportedInstruction
from kernel_gym.sim.asm.operands import literal32, parse_operand
from kernel_gym.sim.asm.text import Instruction
from kernel_gym.sim.compiler.program import SCALAR, ProgramBuilder, Source

DEFAULT_MODE = 0x2F0  # csrc/wave.h: nearest even, all denormals kept
_ARITHMETIC_BITS = 0x3F  # rounding of both kinds, denormals of f32
_HALF_DENORMALS = 0xC0
_REGISTER = re.compile(r"hwreg\((\w+)(?:,(\d+),(\d+))?\)")
_INDEXED = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}
INDEXED_SOURCE, INDEXED_DESTINATION = 1, 8
# Descriptor values that set bits of MODE: name to (shift, default of compilers).
_DESCRIPTOR = {
    "float_round_mode_32": (0, 0),
    "float_round_mode_16_64": (2, 0),
    "float_denorm_mode_32": (4, 3),
    "float_denorm_mode_16_64": (6, 3),
}
# Operations whose result depends on rounding or denormals; approximations do not follow MODE.
_ARITHMETIC = re.compile(
    r"^v_(?:pk_)?(?:add|sub|subrev|mul|fma|fmac|fmamk|fmaak|fma_mix|mac|mad|ldexp|cmpx?_[a-z]+"
    r"|dot2c?|cvt)_(f16|f32|f64)"
)


def _field(instruction: Instruction) -> tuple[str, int, int, str]:
    """Register, bit offset and width of a hardware register field, and the other operand."""
    text = ",".join(instruction.operands).replace(" ", "")
    match = _REGISTER.search(text)
    if not match:
        raise UnsupportedInstruction("the hardware register is not understood")
    rest = (text[: match.start()] + text[match.end() :]).strip(",")
    return match.group(1), int(match.group(2) or 0), int(match.group(3) or 32), rest


def _is_mode(register: str) -> bool:
    return register in ("HW_REG_MODE", "1")


def initial_mode(descriptor: Mapping[str, int]) -> int:
    """MODE at the start of a kernel."""
    mode = DEFAULT_MODE & ~0xFF
    for name, (shift, usual) in _DESCRIPTOR.items():
        # A value that the text omits is the default of compilers.
        mode |= (descriptor.get(name, usual) & 3) << shift
    return mode


def _changes_arithmetic(instruction: Instruction) -> bool:
    """Whether an instruction may set rounding or denormals to something unusual."""
    if not instruction.mnemonic.startswith("s_setreg"):
        return False
    register, offset, width, rest = _field(instruction)
    affected = ((1 << width) - 1) << offset & _ARITHMETIC_BITS
    if not _is_mode(register) or not affected:
        return False
    value = parse_operand(rest)
    return value.kind != "i" or (int(value.value) << offset ^ DEFAULT_MODE) & affected != 0


def is_modal(instructions: Iterable[Instruction], descriptor: Mapping[str, int]) -> bool:
    """Whether a kernel may compute in another mode than the default."""
    start = (initial_mode(descriptor) ^ DEFAULT_MODE) & _ARITHMETIC_BITS
    return bool(start) or any(map(_changes_arithmetic, instructions))


def arithmetic_kind(mnemonic: str) -> int | None:
    """1 for arithmetic on f32, 0 on f64 or f16 (by the result), None if MODE has no effect."""
    match = _ARITHMETIC.match(mnemonic)
    if not match:
        return None
    return int(match.group(1) == "f32")


def emit_mode(builder: ProgramBuilder, mode: int) -> None:
    """Set the whole register, at the start of a kernel.

    Raises:
        UnsupportedInstruction: If f16 and f64 denormals are to be flushed.
    """
    _check(mode, 0xFF)
    if mode != DEFAULT_MODE:
        builder.emit("set_mode", sources=(builder.scalar_constant(mode),), imm=32 << 8)


def _check(value: int, mask: int) -> None:
    wanted = mask & _HALF_DENORMALS
    if value & wanted != wanted:
        raise UnsupportedInstruction("flushing denormals of f16 and f64 is not supported")


def emit_setreg(builder: ProgramBuilder, instruction: Instruction) -> None:
    """Append a write of a hardware register. Only MODE has an effect.

    Raises:
        UnsupportedInstruction: If it would flush f16 and f64 denormals.
    """
    register, offset, width, rest = _field(instruction)
    if not _is_mode(register):
        return
    value = parse_operand(rest)
    if value.kind == "s":
        source = Source(value.index, SCALAR)
    else:
        word = literal32(value, "b32")
        _check(word << offset, ((1 << width) - 1) << offset)
        source = builder.scalar_constant(word)
    builder.emit("set_mode", sources=(source,), imm=offset | width << 8)


def emit_getreg(builder: ProgramBuilder, instruction: Instruction) -> None:
    """Append a read of a hardware register. All but MODE read as zero."""
    register, offset, width, rest = _field(instruction)
    dst = parse_operand(rest).index
    if _is_mode(register):
        builder.emit("get_mode", dst=dst, imm=offset | width << 8)
    else:
        builder.emit("s_mov_b32", dst=dst, sources=(builder.scalar_constant(0),))


def emit_index(builder: ProgramBuilder, instruction: Instruction) -> None:
    """Handle the ``s_set_gpr_idx_*`` instructions.

    Raises:
        UnsupportedInstruction: If an operand is not understood.
    """
    action = instruction.mnemonic.rpartition("_")[2]
    operands = instruction.operands
    if action == "off":
        builder.indexed = 0
        return
    if action in ("on", "mode"):
        names = re.findall(r"[A-Z]+\d*", operands[-1])
        if not set(names) <= set(_INDEXED):
            raise UnsupportedInstruction(f"operand {operands[-1]!r} is not understood")
        builder.indexed = sum(_INDEXED[name] for name in names)
    if action == "mode":
        return
    index = parse_operand(operands[0])
    source = (
        Source(index.index, SCALAR)
        if index.kind == "s"
        else builder.scalar_constant(literal32(index, "b32"))
    )
    builder.emit("set_index", sources=(source,), imm=builder.indexed, aux=int(action == "on"))
