"""What a wave waits for: the one reading of waits that engine, audit and timing share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kernel_gym.sim.asm.errors import UnsupportedInstruction
from kernel_gym.sim.asm.expressions import integer
from kernel_gym.sim.asm.text import Instruction

MOST_VECTOR, MOST_LOCAL, MOST_EXPORT = 63, 15, 7  # what the counters can count
IDLE = frozenset({"s_nop", "s_sleep"})
_MOST = {"vmcnt": MOST_VECTOR, "lgkmcnt": MOST_LOCAL, "expcnt": MOST_EXPORT}
_COUNTER = re.compile(r"\s*(vmcnt|lgkmcnt|expcnt)(_sat)?\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*")
_SEPARATOR = re.compile(r"[&,]?")
_SLEEP_CYCLES, _NOP_CYCLES = 64, 4
_SLEEP_MASK, _NOP_MASK = 0x7F, 0xF  # bits of the literal that count


@dataclass(frozen=True)
class Wait:
    """How many operations may still be under way behind a wait.

    Attributes:
        vector: Of those that vmcnt counts; None: any number.
        local: Of those that lgkmcnt counts; None: any number.
    """

    vector: int | None = None
    local: int | None = None


def decode_wait(instruction: Instruction) -> Wait:
    """What an ``s_waitcnt`` waits for, however it is written.

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
        found = _COUNTER.match(text, place)
        if not found:
            raise ValueError(f"found {text[place:][:40]!r}, expected a counter")
        name, saturates, count = found.groups()
        limits[name] = _limit(name, integer(count), bool(saturates))
        separator = _SEPARATOR.match(text, found.end())
        place = separator.end() if separator else found.end()
    return _of_limits(limits)


def _limit(name: str, count: int, saturates: bool) -> int:
    most = _MOST[name]
    if count < 0 or (count > most and not saturates):
        raise ValueError(f"{name} is {count}, expected 0 to {most}")
    return min(count, most)


def _of_field(field: int) -> Wait:
    """The 16 bits that the instruction encodes."""
    if not -0x8000 <= field <= 0xFFFF:
        raise ValueError(f"{field} does not fit 16 bits")
    return _of_limits({"vmcnt": (field & 15) | (field >> 10 & 48), "lgkmcnt": field >> 8 & 15})


def _of_limits(limits: dict[str, int]) -> Wait:
    vector, local = limits.get("vmcnt"), limits.get("lgkmcnt")
    # A counter never exceeds its most: to wait for that is to wait for nothing.
    return Wait(None if vector == MOST_VECTOR else vector, None if local == MOST_LOCAL else local)


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
