"""Every operation that a target's assembler takes is checked somewhere or refused with a reason."""

from __future__ import annotations

import pytest

from kernel_gym.sim import native
from kernel_gym.sim.asm.errors import AsmError
from kernel_gym.sim.compiler.decode import decode_kernel
from tests.sim.isa import pcode
from tests.sim.isa.forms import TARGETS, forms
from tests.sim.isa.known import ELSEWHERE, REFUSED, find
from tests.sim.support import kernel_text, parse

pytest.importorskip("tinygrad")

UNREAD = {"v_pk_fmac_f16"}
"""Operations whose 64-bit form LLVM 19 assembles and does not disassemble: a compile error."""


def decode(text: str, target: str) -> None:
    """Decode a kernel of one instruction."""
    handlers = native.load_library(native.choose_isa()).handlers
    decode_kernel(parse(kernel_text(f"\t{text}").replace("gfx942", target)), "k", handlers)


@pytest.mark.parametrize("target", TARGETS)
def test_every_operation_decodes_or_is_refused_with_its_place(target):
    refused, unexpected = 0, []
    for form in forms():
        text = form.texts.get(target)
        if text is None:
            continue
        try:
            decode(text, target)
        except AsmError as error:  # of the decoder, or of LLVM
            refused += 1
            if form.name in UNREAD and "is no instruction of" in str(error):
                continue
            placed = f"line {error.line}: `{text.split()[0]}" in str(
                error
            )  # LLVM writes the operands
            if not placed or not find(REFUSED, form.name):
                unexpected.append(str(error))
        else:
            if find(REFUSED, form.name):
                unexpected.append(f"{text} is said to be refused")
    assert not unexpected, "\n".join(unexpected)
    assert refused <= 12


def test_every_operation_has_an_expectation():
    missing = []
    for form in forms():
        if find(ELSEWHERE, form.name) or find(REFUSED, form.name):
            continue
        try:
            pcode.translate(form.name)
        except pcode.Untranslatable as error:
            missing.append(f"{form.name}: {error}")
    assert not missing, "\n".join(missing)
