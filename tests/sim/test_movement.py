"""Lanes that lie side by side by groups, as tiles have them: moved together, like each alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.support import kernel_text, run

RNG = np.random.default_rng(11)
LANES = np.arange(64)
WIDTHS = {"u16": (2, "b16"), "b32": (4, "b32"), "b64": (8, "b64"), "b128": (16, "b128")}


def places(group: int, size: int) -> np.ndarray:
    """Byte offsets of lanes in groups of so many neighbours, the groups in any order."""
    order = RNG.permutation(64 // group)
    return ((order[LANES // group] * group + LANES % group) * size).astype(np.uint32)


@pytest.mark.parametrize("group", [64, 16, 8, 4, 2])
@pytest.mark.parametrize("kind", WIDTHS)
def test_lds_by_groups(any_engine, kind, group):
    size, stored = WIDTHS[kind]
    words = max(1, size // 4)
    load, first = f"global_load_dword{f'x{words}' if words > 1 else ''}", "s[4:5]"
    pick = f"v[8:{7 + words}]" if words > 1 else "v8"
    body = f"""s_load_dwordx4 s[4:7], s[0:1], 0x0
	s_load_dwordx2 s[8:9], s[0:1], 0x10
	v_lshlrev_b32_e32 v1, 2, v0
	v_mul_u32_u24_e32 v2, {4 * words}, v0
	s_waitcnt lgkmcnt(0)
	global_load_dword v3, v1, s[8:9]
	global_load_dword v4, v1, s[8:9] offset:256
	{load} {pick}, v2, {first}
	s_waitcnt vmcnt(0)
	ds_write_{stored} v3, {pick} offset:64
	s_waitcnt lgkmcnt(0)
	ds_read_{kind} {pick}, v4 offset:64
	s_waitcnt lgkmcnt(0)
	global_store_dword{f"x{words}" if words > 1 else ""} v2, {pick}, s[6:7]"""
    data = RNG.integers(0, 2**32, (64, words), dtype=np.uint32)
    to, back = places(group, size), places(group, size)
    out = np.zeros_like(data)
    text = kernel_text("\n".join("\t" + line.strip() for line in body.splitlines()), 3, lds=2048)
    run(any_engine, text, (1,), [data, out, np.stack([to, back])])
    memory = np.zeros((64, words), np.uint32)
    memory[to // size] = data & 0xFFFF if size == 2 else data
    np.testing.assert_array_equal(out, memory[back // size])


@pytest.mark.parametrize("group", [64, 16, 8, 4, 1])
@pytest.mark.parametrize("words", [1, 2, 4])
def test_global_memory_by_groups(any_engine, words, group):
    """Several workgroups, so that what the next one wants is known beforehand."""
    wide = f"x{words}" if words > 1 else ""
    pick = f"v[8:{7 + words}]" if words > 1 else "v8"
    body = f"""s_load_dwordx4 s[4:7], s[0:1], 0x0
	s_load_dwordx2 s[8:9], s[0:1], 0x10
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_dword v3, v1, s[8:9]
	global_load_dword v4, v1, s[8:9] offset:256
	s_mul_i32 s3, s2, {256 * words}
	s_waitcnt vmcnt(0)
	v_add_u32_e32 v3, s3, v3
	v_add_u32_e32 v4, s3, v4
	global_load_dword{wide} {pick}, v3, s[4:5]
	s_waitcnt vmcnt(0)
	global_store_dword{wide} v4, {pick}, s[6:7]"""
    groups = 4
    data = RNG.integers(0, 2**32, (groups, 64, words), dtype=np.uint32)
    out = np.zeros_like(data)
    source, target = places(group, 4 * words), places(group, 4 * words)
    text = kernel_text("\n".join("\t" + line.strip() for line in body.splitlines()), 3)
    run(any_engine, text, (groups,), [data, out, np.stack([source, target])])
    expected = np.zeros_like(data)
    expected[:, target // (4 * words)] = data[:, source // (4 * words)]
    np.testing.assert_array_equal(out, expected)
