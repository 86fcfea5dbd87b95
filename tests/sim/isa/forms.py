"""Every vector and scalar operation of the manuals' lists, as text that the assembler takes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from tests.sim.isa.assembler import accepted

TARGETS = ("gfx90a", "gfx942", "gfx950")
_VECTOR = {"vdst": 10, "src0": 2, "src1": 4, "vsrc1": 4, "src2": 6}
_SCALAR = {"sdst": 20, "ssrc0": 4, "ssrc1": 8}
_GROUPS = ("VOP1Op", "VOP2Op", "VOPCOp", "VOP3Op", "VOP3POp", "VOP3SDOp")
_SCALAR_GROUPS = ("SOP1Op", "SOP2Op", "SOPCOp", "SOPKOp")


@dataclass(frozen=True)
class Form:
    """One operation.

    Attributes:
        name: Mnemonic without the encoding.
        texts: Target to instruction.
        formats: Operand to number format, such as ``F32``.
        sizes: Operand to bits.
        scalar: Whether it works on scalar registers.
    """

    name: str
    texts: dict[str, str]
    formats: dict[str, str]
    sizes: dict[str, int]
    scalar: bool

    @property
    def sources(self) -> list[str]:
        """Source operands, in order."""
        return [
            name
            for name in ("src0", "src1", "vsrc1", "src2", "ssrc0", "ssrc1", "simm16")
            if name in self.formats
        ]


def _register(letter: str, first: int, bits: int) -> str:
    count = max(1, -(-bits // 32))
    return f"{letter}{first}" if count == 1 else f"{letter}[{first}:{first + count - 1}]"


def _vector_texts(group: str, name: str, sizes: dict[str, int]) -> list[str]:
    def operand(key: str) -> str:
        return _register("v", _VECTOR[key], sizes[key])

    base = re.sub(r"_e(32|64)$", "", name)
    sources = ", ".join(operand(key) for key in ("src0", "src1", "vsrc1", "src2") if key in sizes)
    if group == "VOPCOp":
        return [f"{name} vcc, {sources}"]
    if "vdst" not in sizes or name.startswith("v_cmp"):
        return [f"{name} s[20:21], {sources}"]
    target = operand("vdst")
    if group == "VOP3SDOp":
        carry = [f"{base}_e64 {target}, s[20:21], {sources}, vcc"]
        return [
            f"{base} {target}, s[20:21], {sources}",
            f"{base} {target}, vcc, {sources}",
            f"{base}_e64 {target}, s[20:21], {sources}",
            *carry,
        ]
    texts = [
        f"{name} {target}, vcc, {sources}, vcc",
        f"{name} {target}, vcc, {sources}",
        f"{name} {target}, {sources}, vcc",
        f"{name} {target}, {sources}",
    ]
    texts += [f"{base} {target}, {sources}", f"{base} {target}, {sources}, vcc"]
    texts += (
        [
            f"{base} {target}, {operand('src0')}, 0x4123, {operand('vsrc1')}",
            f"{base} {target}, {sources}, 0x4123",
        ]
        if "vsrc1" in sizes
        else []
    )
    return texts


def _scalar_texts(name: str, sizes: dict[str, int]) -> list[str]:
    parts = [_register("s", _SCALAR[key], sizes[key]) for key in _SCALAR if key in sizes]
    if "simm16" in sizes:
        special = {"s_call_b64": "k", "s_getreg_b32": "hwreg(HW_REG_MODE)"}
        parts.append(special.get(name, "0x8123"))
    return [f"{name} {', '.join(parts)}"]


@cache
def forms() -> list[Form]:
    """All of them that some target has."""
    from tinygrad.runtime.autogen.amd.cdna.operands import OPERANDS

    by_name: dict[tuple[str, ...], Form] = {}
    for operation, operands in OPERANDS.items():
        group, name = type(operation).__name__, operation.name.lower()
        if group not in (*_GROUPS, *_SCALAR_GROUPS):
            continue
        sizes = {key: bits for key, (_, bits, _) in operands.items()}
        scalar = group in _SCALAR_GROUPS
        texts = _scalar_texts(name, sizes) if scalar else _vector_texts(group, name, sizes)
        by_target = {}
        for target in TARGETS:
            answers = accepted(texts, target)
            good = [text for text, ok in zip(texts, answers, strict=True) if ok]
            if good:
                by_target[target] = good[0]
        if by_target:
            formats = {key: form.name[len("FMT_NUM_") :] for key, (form, _, _) in operands.items()}
            base = re.sub(r"_e(32|64)$", "", name)
            by_name[(group, name)] = Form(base, by_target, formats, sizes, scalar)
    return list(by_name.values())
