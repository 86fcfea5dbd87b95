"""Operand texts: registers, literals and their source modifiers."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import lru_cache

from kernel_gym.sim.layouts import ScalarIndex

# Scalar register numbers of named registers, as the hardware encodes them (csrc/wave.h).
FLAT_SCRATCH, VCC, M0 = int(ScalarIndex.FLAT_SCRATCH), int(ScalarIndex.VCC), int(ScalarIndex.M0)
EXEC, SCC, NULL = int(ScalarIndex.EXEC), int(ScalarIndex.SCC), int(ScalarIndex.NULL)
SCALAR_CONSTANTS = int(ScalarIndex.SCALAR_CONSTANTS)
XNACK_MASK, TTMP0 = 104, 108
NAMED_SCALARS = {
    "flat_scratch": (FLAT_SCRATCH, 2),
    "flat_scratch_lo": (FLAT_SCRATCH, 1),
    "flat_scratch_hi": (FLAT_SCRATCH + 1, 1),
    "xnack_mask": (XNACK_MASK, 2),
    "xnack_mask_lo": (XNACK_MASK, 1),
    "xnack_mask_hi": (XNACK_MASK + 1, 1),
    "vcc": (VCC, 2),
    "vcc_lo": (VCC, 1),
    "vcc_hi": (VCC + 1, 1),
    "m0": (M0, 1),
    "exec": (EXEC, 2),
    "exec_lo": (EXEC, 1),
    "exec_hi": (EXEC + 1, 1),
    "scc": (SCC, 1),
    "src_scc": (SCC, 1),
    "null": (NULL, 2),
}
# 64-bit values whose upper half is the aperture of flat addresses (csrc/memory.cpp).
APERTURES = {
    "src_shared_base": 0x10000 << 32,
    "src_private_base": 0x20000 << 32,
    "src_shared_limit": (0x10000 << 32) | 0xFFFFFFFF,
    "src_private_limit": (0x20000 << 32) | 0xFFFFFFFF,
}

_REGISTER = re.compile(r"^([vas])(?:(\d+)|\[(\d+)(?::(\d+))?\])$")
_TTMP = re.compile(r"^ttmp(?:(\d+)|\[(\d+):(\d+)\])$")
_INTEGER = re.compile(r"^-?(0x[0-9a-fA-F]+|\d+)$")
_FLOAT = re.compile(r"^-?(\d*\.\d+|\d+\.\d*|\d+(?=e))(e[-+]?\d+)?$")


@dataclass(frozen=True, slots=True)
class OperandText:
    """A parsed operand.

    Attributes:
        kind: ``v`` vector register, ``a`` accumulation register, ``s`` scalar register,
            ``i`` integer, ``f`` float, ``off`` or ``expr`` (anything else).
        index: First register.
        count: Registers.
        value: The number of an ``i`` or ``f``.
        neg: Negated (``-x`` or ``neg(x)``).
        abs: Absolute value (``|x|`` or ``abs(x)``).
        sext: Sign-extended selection (``sext(x)``).
        text: The text itself.
    """

    kind: str
    index: int = 0
    count: int = 1
    value: int | float = 0
    neg: bool = False
    abs: bool = False
    sext: bool = False
    text: str = ""

    @property
    def is_vector(self) -> bool:
        """Whether it names a vector or accumulation register."""
        return self.kind in "va"


def _strip_modifiers(text: str) -> tuple[str, bool, bool, bool]:
    """The bare operand, and whether it is negated, absolute, sign-extended."""
    neg = absolute = sext = False
    if text.startswith("-") and not (text[1:2].isdigit() or text[1:2] == "."):
        neg, text = True, text[1:]
    if text.startswith("neg(") and text.endswith(")"):
        neg, text = True, text[4:-1]
    if len(text) > 2 and text[0] == text[-1] == "|":
        absolute, text = True, text[1:-1]
    elif text.startswith("abs(") and text.endswith(")"):
        absolute, text = True, text[4:-1]
    if text.startswith("sext(") and text.endswith(")"):
        sext, text = True, text[5:-1]
    return text, neg, absolute, sext


def _bare_operand(text: str) -> tuple[str, int, int, int | float]:
    """Kind, index, count and value of an operand without modifiers."""
    register = _REGISTER.match(text)
    if register:
        kind, single, first, last = register.groups()
        index = int(single if single is not None else first)
        return kind, index, int(last) - index + 1 if last else 1, 0
    if text in NAMED_SCALARS:
        return "s", *NAMED_SCALARS[text], 0
    if _INTEGER.match(text):
        return "i", 0, 1, int(text, 0)
    if _FLOAT.match(text):
        return "f", 0, 1, float(text)
    if text in APERTURES:
        return "i", 0, 2, APERTURES[text]
    trap = _TTMP.match(text)
    if trap:
        first = int(trap.group(1) or trap.group(2))
        return "s", TTMP0 + first, int(trap.group(3) or first) - first + 1, 0
    return ("off" if text == "off" else "expr"), 0, 1, 0


@lru_cache(maxsize=65536)
def parse_operand(text: str) -> OperandText:
    """Parse one operand. An operand that is not recognised has kind ``expr``."""
    bare, neg, absolute, sext = _strip_modifiers(text)
    kind, index, count, value = _bare_operand(bare)
    return OperandText(kind, index, count, value, neg, absolute, sext, bare)


def float_bits(value: float, kind: str) -> int:
    """Bits of a float literal as ``f16``, ``bf16``, ``f32`` or ``f64``."""
    if kind == "f16":
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    if kind == "f64":
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def literal32(operand: OperandText, kind: str) -> int:
    """The 32-bit word that a literal stands for in an operation on ``kind`` values."""
    if operand.kind == "f":
        return float_bits(float(operand.value), "f16" if kind in ("f16", "pk_f16") else "f32")
    if operand.count == 2:  # an aperture: a 32-bit use reads its upper half
        return int(operand.value) >> 32
    return int(operand.value) & 0xFFFFFFFF


def literal64(operand: OperandText, kind: str) -> int:
    """The 64-bit value that a literal stands for.

    Inline floats are doubles in every operation. Inline integers (-16 to 64) are sign-extended;
    other literals are the low word, for ``f64`` the high word.
    """
    if operand.kind == "f":
        return float_bits(float(operand.value), "f64")
    value = int(operand.value)
    if operand.count == 2 or -16 <= value <= 64:
        return value & 0xFFFFFFFFFFFFFFFF
    if kind == "f64":
        return (value & 0xFFFFFFFF) << 32
    return value & 0xFFFFFFFF
