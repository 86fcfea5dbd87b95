"""Decodes wait instructions, once for the engine, the audit and the timing model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kernel_gym.sim.asm.errors import UnsupportedInstruction
from kernel_gym.sim.asm.expressions import integer
from kernel_gym.sim.asm.text import Instruction

MAX_VECTOR, MAX_LOCAL, MAX_EXPORT = 63, 15, 7  # maximum of each counter
IDLE = frozenset({"s_nop", "s_sleep"})
_MOST = {"vmcnt": MAX_VECTOR, "lgkmcnt": MAX_LOCAL, "expcnt": MAX_EXPORT}
_COUNTER = re.compile(r"\s*(vmcnt|lgkmcnt|expcnt)(_sat)?\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*")
_SEPARATOR = re.compile(r"[&,]?")
_SLEEP_CYCLES, _NOP_CYCLES = 64, 4
_SLEEP_MASK, _NOP_MASK = 0x7F, 0xF  # bits of the literal that are used


@dataclass(frozen=True)
class Wait:
    """How many operations may still be under way after a wait.

    Attributes:
        vector: Operations counted by vmcnt; None: any number.
        local: Operations counted by lgkmcnt; None: any number.
    """

    vector: int | None = None
    local: int | None = None


def decode_wait(instruction: Instruction) -> Wait:
    """Decodes an ``s_waitcnt`` in any of its notations.

    Raises:
        UnsupportedInstruction: If its operand cannot be read.
    """
    try:
        return _decode(" ".join(instruction.operands))
    except ValueError as error:
        raise UnsupportedInstruction(
            f"its operand is not understood: {error}", instruction.line, instruction.text
        ) from None


@lru_cache(maxsize=4096)
def _decode(text: str) -> Wait:
    if not any(name in text for name in _MOST):
        return _of_field(integer(text))
    limits: dict[str, int] = {}
    place = 0
    while place < len(text):
        counter = _COUNTER.match(text, place)
        if not counter:
            raise ValueError(f"found {text[place:][:40]!r}, expected a counter")
        name, saturates, count = counter.groups()
        limits[name] = _limit(name, integer(count), bool(saturates))
        separator = _SEPARATOR.match(text, counter.end())
        place = separator.end() if separator else counter.end()
    return _of_limits(limits)


def _limit(name: str, count: int, saturates: bool) -> int:
    most = _MOST[name]
    if count < 0 or (count > most and not saturates):
        raise ValueError(f"{name} is {count}, expected 0 to {most}")
    return min(count, most)


def _of_field(field: int) -> Wait:
    """Decodes the 16 bits of the instruction's encoding."""
    if not -0x8000 <= field <= 0xFFFF:
        raise ValueError(f"{field} does not fit 16 bits")
    return _of_limits({"vmcnt": (field & 15) | (field >> 10 & 48), "lgkmcnt": field >> 8 & 15})


def _of_limits(limits: dict[str, int]) -> Wait:
    vector, local = limits.get("vmcnt"), limits.get("lgkmcnt")
    # A counter never exceeds its maximum, so a wait for that value waits for nothing.
    return Wait(None if vector == MAX_VECTOR else vector, None if local == MAX_LOCAL else local)


def idle_cycles(instruction: Instruction) -> int:
    """Cycles of an ``s_nop`` or ``s_sleep``.

    Raises:
        UnsupportedInstruction: If its operand cannot be read.
    """
    try:
        count = integer(" ".join(instruction.operands) or "0")
    except ValueError as error:
        raise UnsupportedInstruction(
            f"its operand is not understood: {error}", instruction.line, instruction.text
        ) from None
    if instruction.mnemonic == "s_sleep":
        return _SLEEP_CYCLES * (count & _SLEEP_MASK)
    return _NOP_CYCLES * ((count & _NOP_MASK) + 1)


def check_idle(instruction: Instruction) -> None:
    """Refuses a wait or pause that cannot be read.

    Raises:
        UnsupportedInstruction: If its operand cannot be read.
    """
    if instruction.mnemonic == "s_waitcnt":
        decode_wait(instruction)
    elif instruction.mnemonic in IDLE:
        idle_cycles(instruction)
