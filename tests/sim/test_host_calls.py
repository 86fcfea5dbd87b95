"""Kernels that call the host are refused when they are loaded, instead of waiting for it."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl

from kernel_gym.sim.asm.errors import AsmError
from tests.sim.support import kernel_text
from tests.sim.triton_kernels import compiled

PRINTF = (
    "      - .name: b\n        .offset: 8\n        .size: 8\n"
    "        .value_kind: hidden_printf_buffer\n    .group_segment_fixed_size"
)


@triton.jit
def prints(x, BLOCK: tl.constexpr):
    values = tl.load(x + tl.arange(0, BLOCK))
    tl.device_print("values", values)
    tl.store(x + tl.arange(0, BLOCK), values + 1)


def test_device_print(engine):
    text, shared = compiled(prints, ["*fp32"], BLOCK=64)
    with pytest.raises(AsmError, match=r"kernel prints calls the host \(hidden_hostcall_buffer\)"):
        engine.load(text, shared=shared)


def test_an_argument_for_host_calls_alone_calls_nobody(engine):
    text = kernel_text("\ts_nop 0")
    listed = PRINTF.replace("hidden_printf_buffer", "hidden_hostcall_buffer")
    text = text.replace("    .group_segment_fixed_size", listed, 1)
    engine.load(text)
    with pytest.raises(AsmError, match="hidden_hostcall_buffer"):
        engine.load(text.replace("\ts_nop 0", "\ts_sendmsg sendmsg(MSG_INTERRUPT)", 1))


def test_printf_through_a_buffer(engine):
    text = kernel_text("\ts_nop 0")
    engine.load(text)
    with pytest.raises(AsmError, match=r"hidden_printf_buffer.*take out device_print, printf"):
        engine.load(text.replace("    .group_segment_fixed_size", PRINTF, 1))
