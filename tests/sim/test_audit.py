"""Audits of kernels that only look racy; planted faults are in ``seeded``."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl

from tests.sim.support import kernel_text, launch
from tests.sim.triton_kernels import compiled


@triton.jit
def step_in_place(param, velocity, BLOCK: tl.constexpr):
    """One program updates BLOCK elements of two vectors."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    moved = tl.load(velocity + at) * 0.5 + tl.load(param + at)
    tl.store(param + at, moved)
    tl.store(velocity + at, moved * 2)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("block", [64, 128])
def test_copies_of_what_another_wave_updates_in_place_are_no_race(engine, block, reverse):
    # Four waves have more lanes than there are elements: some load what they then throw away.
    text, shared = compiled(step_in_place, ["*fp32", "*fp32"], 4, 2, (), BLOCK=block)
    random = np.random.default_rng(0)
    param, velocity = (random.standard_normal(4 * block).astype(np.float32) for _ in range(2))
    moved = velocity * np.float32(0.5) + param
    kernel = engine.load(text, shared=shared)
    result = launch(
        engine, kernel, (4,), (256,), [param, velocity], audit=True, reverse_waves=reverse
    )
    assert result.fault is None, result.fault.message
    np.testing.assert_allclose(param, moved, rtol=1e-6, atol=1e-7)


EXCHANGE = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_xor_b32_e32 v2, 0x100, v1
	ds_write_b32 v1, v0
	{wait}
	s_barrier
	ds_read_b32 v3, v2
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[6:7]
"""


@pytest.mark.parametrize(
    ("wait", "kind"),
    [
        ("s_waitcnt lgkmcnt(0)", None),
        ("s_waitcnt vmcnt(0)", "unwaited_write"),
        ("s_waitcnt lgkmcnt(1)", "unwaited_write"),
    ],
)
def test_a_write_must_land_before_the_barrier(engine, wait, kind):
    body = EXCHANGE.format(wait=wait)
    body = body.replace("\tds_write", "\ts_waitcnt lgkmcnt(0)\n\tds_write")
    out = np.zeros(128, np.uint32)
    kernel = engine.load(kernel_text(body, arguments=2, lds=512))
    values = [np.zeros(1, np.uint32), out]
    result = launch(engine, kernel, (1,), (128,), values, audit=True)
    assert (result.fault and result.fault.kind) == kind
    if kind is None:
        assert out.tolist() == [i ^ 64 for i in range(128)]
    else:
        assert "the write is by wave 1" in result.fault.message
