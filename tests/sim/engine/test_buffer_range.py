"""Loads and stores of several words that a buffer's end divides are checked word by word."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.support import kernel_text, run

BYTES = 40
"""The size that the resource states: two whole pieces of four words, and two words of a third."""
RESOURCE = f"""
    s_load_dwordx4 s[8:11], s[0:1], 0x0
    s_mov_b32 s6, {BYTES:#x}
    s_mov_b32 s7, 0x27000
    v_lshlrev_b32_e32 v1, 4, v0
    v_mov_b32_e32 v8, v1
    s_waitcnt lgkmcnt(0)
    s_mov_b64 s[4:5], s[8:9]
"""
STRUCTURES = RESOURCE.replace(
    "s_mov_b64 s[4:5], s[8:9]",
    "s_mov_b64 s[4:5], s[8:9]\n    s_or_b32 s5, s5, 0x180000\n    s_mov_b32 s6, 3",
)
"""Three structures of 24 bytes: a piece of four words at byte 16 has two of them."""
WORDS = np.arange(1, 4 * 64 + 1, dtype=np.uint32)


def both(any_engine, body, **options):
    """The second argument of a kernel whose first one has words; and the first one afterwards."""
    first, second = WORDS.copy(), np.full(4 * 64, 7, np.uint32)
    lines = "\n".join("\t" + line.strip() for line in body.splitlines())
    run(any_engine, kernel_text(lines, 2, **options), (1,), [first, second])
    return second, first


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_load_has_the_words_in_range_and_zeros(any_engine, count):
    body = RESOURCE + (
        f"v_mov_b32_e32 v2, v1\nbuffer_load_dwordx{count} v[2:{count + 1}], v2, s[4:7], 0 offen\n"
        f"s_waitcnt vmcnt(0)\nglobal_store_dwordx{count} v8, v[2:{count + 1}], s[10:11]"
    )
    second, _ = both(any_engine, body)
    expected = np.where(np.arange(4 * 64) < BYTES // 4, WORDS, 0)
    expected[np.arange(4 * 64) % 4 >= count] = 7
    assert second.tolist() == expected.tolist()


def test_a_scalar_offset_counts(any_engine):
    body = RESOURCE + (
        "s_mov_b32 s12, 8\nbuffer_load_dwordx4 v[4:7], v1, s[4:7], s12 offen\n"
        "s_waitcnt vmcnt(0)\nglobal_store_dwordx4 v8, v[4:7], s[10:11]"
    )
    second, _ = both(any_engine, body)
    assert second[:12].tolist() == [3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0, 0]
    body = body.replace("s_mov_b32 s12, 8", "s_mov_b32 s12, 4")
    second, _ = both(any_engine, body)
    assert second[:12].tolist() == [2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0]


def test_a_store_writes_the_words_in_range(any_engine):
    body = RESOURCE + (
        "v_mov_b32_e32 v4, 100\nv_mov_b32_e32 v5, 101\nv_mov_b32_e32 v6, 102\n"
        "v_mov_b32_e32 v7, 103\nbuffer_store_dwordx4 v[4:7], v1, s[4:7], 0 offen"
    )
    _, first = both(any_engine, body)
    assert first[:10].tolist() == [100, 101, 102, 103, 100, 101, 102, 103, 100, 101]
    assert first[10:].tolist() == WORDS[10:].tolist()


def test_the_end_of_a_structure_divides_too(any_engine):
    body = STRUCTURES + (
        "v_mov_b32_e32 v2, v0\nv_mov_b32_e32 v3, 16\n"
        "buffer_load_dwordx4 v[4:7], v[2:3], s[4:7], 0 idxen offen\n"
        "s_waitcnt vmcnt(0)\nglobal_store_dwordx4 v8, v[4:7], s[10:11]"
    )
    second, _ = both(any_engine, body)
    assert second[:16].tolist() == [5, 6, 0, 0, 11, 12, 0, 0, 17, 18, 0, 0, 0, 0, 0, 0]


def test_a_wide_atomic_is_in_range_as_a_whole(any_engine):
    body = RESOURCE.replace(f"{BYTES:#x}", "0xc") + (
        "v_mov_b32_e32 v2, 1\nv_mov_b32_e32 v3, 0\nv_lshlrev_b32_e32 v1, 3, v0\n"
        "buffer_atomic_add_x2 v[2:3], v1, s[4:7], 0 offen"
    )
    _, first = both(any_engine, body)
    assert first[:4].tolist() == [2, 2, 3, 4]
