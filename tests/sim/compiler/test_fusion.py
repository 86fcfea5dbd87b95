"""Idioms that run as one operation: the same bits as instruction by instruction, or left alone."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gym.sim.engine.engine import Engine
from tests.sim.support import execute, instruction_text, kernel_text

RNG = np.random.default_rng(5)
DIVISION = """v_div_scale_f32 v12, s[8:9], v11, v11, v10
	v_div_scale_f32 v13, vcc, v10, v11, v10
	v_rcp_f32_e32 v14, v12
	v_fma_f32 v15, -v12, v14, 1.0
	v_fmac_f32_e32 v14, v15, v14
	v_mul_f32_e32 v15, v13, v14
	v_fma_f32 v16, -v12, v15, v13
	v_fmac_f32_e32 v15, v16, v14
	v_fma_f32 v12, -v12, v15, v13
	v_div_fmas_f32 v12, v12, v14, v15
	v_div_fixup_f32 v20, v12, v11, v10"""
# The mask by way of another pair, results in registers that are used again, foreign instructions.
INTERLEAVED = """v_div_scale_f32 v12, s[8:9], v11, v11, v10
	v_mov_b32_e32 v30, v11
	v_rcp_f32_e32 v14, v12
	v_fma_f32 v13, -v12, v14, 1.0
	v_fma_f32 v14, v13, v14, v14
	v_div_scale_f32 v13, s[8:9], v10, v11, v10
	v_mul_f32_e32 v15, v13, v14
	s_mov_b64 vcc, s[8:9]
	v_fma_f32 v16, -v12, v15, v13
	v_fma_f32 v15, v16, v14, v15
	v_fma_f32 v12, -v12, v15, v13
	v_div_fmas_f32 v12, v12, v14, v15
	s_mov_b64 vcc, 0
	v_mov_b32_e32 v14, v30
	v_div_fixup_f32 v20, v12, v11, v10
	v_mov_b32_e32 v12, v14"""
EXP = """s_mov_b32 s8, 0xc2fc0000
	v_mov_b32_e32 v12, 0x42800000
	v_not_b32_e32 v13, 63
	v_cmp_gt_f32_e32 vcc, s8, v10
	v_cndmask_b32_e32 v14, 0, v12, vcc
	v_add_f32_e32 v10, v10, v14
	v_exp_f32_e32 v10, v10
	v_cndmask_b32_e32 v14, 0, v13, vcc
	v_ldexp_f32 v20, v10, v14"""


def fused(text: str) -> bool:
    """Whether a program runs otherwise than it is written."""
    return Engine().load(text).program.is_fused


def as_written(text: str) -> str:
    """The same, but that somebody might read what lies between."""
    return text + "\n\tv_mov_b32_e32 v40, v14\n\tv_mov_b32_e32 v41, v15"


@pytest.mark.parametrize("body", [DIVISION, INTERLEAVED, EXP])
@pytest.mark.parametrize("lanes", ["-1", "0x0ff0"])
def test_the_bits_are_those_of_the_instructions(any_engine, body, lanes):
    setup = f"s_mov_b64 exec, {lanes}"
    assert fused(instruction_text(body, 2, 1, setup))
    plain = as_written(body)
    assert not fused(instruction_text(plain, 2, 1, setup))
    words = RNG.integers(0, 2**32, (6, 2, 64), dtype=np.uint32)  # all exponents, NaN, denormals
    easy = RNG.standard_normal((2, 2, 64)).astype(np.float32).view(np.uint32)
    limits = np.linspace(-160, 140, 64).astype(np.float32).view(np.uint32)
    zeros = np.where(RNG.random((2, 64)) < 0.3, RNG.choice([0, 1 << 31], (2, 64)), words[0])
    rows = [*words, *easy, [limits, easy[0, 0]], [zeros[0].astype(np.uint32), easy[0, 0]]]
    for inputs in rows:
        inputs = [np.asarray(row, np.uint32) for row in inputs]
        together = execute(any_engine, body, inputs, setup=setup)
        np.testing.assert_array_equal(together, execute(any_engine, plain, inputs, setup=setup))


@pytest.mark.parametrize(
    ("original", "instead"),
    [
        ("v_rcp_f32_e32 v14, v12", "v_rcp_f32_e32 v14, v11"),  # of something else
        ("v_fma_f32 v16, -v12, v15, v13", "v_fma_f32 v16, v12, v15, v13"),  # a sign
        ("v_mul_f32_e32 v15", "v_add_f32_e32 v11, v11, v11\n\tv_mul_f32_e32 v15"),  # a source
        ("v_mul_f32_e32 v15", "s_mov_b64 exec, 7\n\tv_mul_f32_e32 v15"),  # other lanes
        ("v_div_fmas", "v_mov_b32_e32 v40, v15\n\tv_div_fmas"),  # a reader between
        ("v_div_fmas", "s_mov_b64 vcc, 0\n\tv_div_fmas"),  # another mask
        ("v_fma_f32 v15, -v12, v14, 1.0", "v_fma_f32 v15, -v12, v14, 2.0"),
        ("s[8:9], v11, v11, v10", "s[8:9], v11, v11, v11"),
    ],
)
def test_what_only_looks_like_a_division_is_left_alone(original, instead):
    assert original in DIVISION
    assert not fused(instruction_text(DIVISION.replace(original, instead), 2))


@pytest.mark.parametrize(
    ("behind", "dead"),
    [
        ("", True),
        ("v_mov_b32_e32 v40, v16", False),
        ("v_mov_b32_e32 v16, 0\n\tv_mov_b32_e32 v40, v16", True),
        ("s_mov_b64 exec, 1\n\tv_mov_b32_e32 v16, 0\n\tv_mov_b32_e32 v40, v16", False),
        (
            "v_mov_b32_dpp v16, v0 row_shr:1 row_mask:0xf bank_mask:0xf\n\tv_mov_b32_e32 v1, v16",
            False,
        ),
        (
            "s_cbranch_execz .LBB0_9\n\tv_mov_b32_e32 v16, 0\n.LBB0_9:\n\tv_mov_b32_e32 v40, v16",
            False,
        ),
        ("s_cbranch_vccz .LBB0_9\n.LBB0_9:", False),  # reads the mask
        ("s_cbranch_execz .LBB0_9\n\ts_cbranch_vccz .LBB0_9\n.LBB0_9:", False),
        ("s_mov_b64 vcc, 0\n\ts_cbranch_vccz .LBB0_9\n.LBB0_9:", True),
        ("v_mov_b32_e32 v16, 0\n\tv_readlane_b32 s12, v16, 3", True),
        ("global_store_dword v1, v16, s[6:7]", False),
        ("ds_write_b32 v1, v12", False),
    ],
)
def test_values_that_may_be_read_later_are_kept(behind, dead):
    text = instruction_text(DIVISION, 2, after=behind)
    assert fused(text) == dead


def test_a_loop_that_divides(any_engine):
    """The values of an iteration are overwritten by the next one before it is read."""
    body = f"""s_mov_b32 s10, 3
.LBB0_1:
	{DIVISION}
	v_mov_b32_e32 v10, v20
	s_sub_u32 s10, s10, 1
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .LBB0_1"""
    n, d = RNG.uniform(1, 2, (2, 64)).astype(np.float32)
    assert fused(instruction_text(body, 2))
    result = execute(any_engine, body, [n, d])[0].view(np.float32)
    np.testing.assert_array_equal(result, n / d / d / d)


def test_long_ways_to_a_constant():
    """Hundreds of blocks, moves in a circle, and masks by way of many registers."""
    lines = EXP.split("\n")
    constants, rest = "\n".join(lines[:3]), "\n".join(lines[3:])
    blocks = "\n".join(f"\ts_cbranch_scc1 .LBB0_{i}\n.LBB0_{i}:" for i in range(2000))
    assert fused(instruction_text(f"{constants}\n{blocks}\n{rest}", 2))
    circle = f"""{constants}
.LBB0_1:
	v_mov_b32_e32 v13, v12
	v_mov_b32_e32 v12, v13
	s_cbranch_scc1 .LBB0_1
{rest}"""
    assert not fused(instruction_text(circle, 2))
    moves = "\n".join(["\ts_mov_b64 s[10:11], vcc\n\ts_mov_b64 vcc, s[10:11]"] * 2000)
    late = DIVISION.replace("\tv_div_fmas", f"{moves}\n\tv_div_fmas")
    assert not fused(instruction_text(late, 2))


def test_a_kernel_that_computes_where_it_goes_is_left_alone():
    text = instruction_text(DIVISION, 2, after="s_getpc_b64 s[12:13]")
    assert not fused(text)
    assert not fused(kernel_text("	v_mov_b32_e32 v1, 0"))
