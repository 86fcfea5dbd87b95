"""An instruction means the same to engine, audit and timing, however it is written."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
import triton.language as tl

from kernel_gym.sim.asm.errors import AsmError
from kernel_gym.sim.asm.text import parse_instruction
from kernel_gym.sim.asm.waits import Wait, decode_wait
from kernel_gym.sim.compiler.audit_tables import audit_table
from kernel_gym.sim.compiler.timing_tables import timing_tables
from tests.sim import triton_kernels as kernels
from tests.sim.support import kernel_text, launch
from tests.sim.triton_kernels import compiled

FIELD = {"vmcnt": (0xF, 0xC000), "lgkmcnt": (0xF00, 0)}


@pytest.mark.parametrize(
    ("operand", "wait"),
    [
        ("vmcnt(0)", Wait(0, None)),
        ("lgkmcnt(3)", Wait(None, 3)),
        ("vmcnt(2) & lgkmcnt(0)", Wait(2, 0)),
        ("vmcnt(2), expcnt(0), lgkmcnt(1)", Wait(2, 1)),
        ("vmcnt(2) lgkmcnt(1)", Wait(2, 1)),
        ("vmcnt(0x1F)", Wait(31, None)),
        ("vmcnt(2 + 1)", Wait(3, None)),
        ("vmcnt_sat(1000)", Wait(None, None)),
        ("expcnt(0)", Wait(None, None)),
        ("0", Wait(0, 0)),
        ("0x0f70", Wait(0, None)),
        ("0xc07f", Wait(None, 0)),
        ("0x4f71", Wait(17, None)),
        ("-1", Wait(None, None)),
        ("(0xf << 8) | 0x70", Wait(0, None)),
    ],
)
def test_waits_are_read_in_all_spellings(operand, wait):
    assert decode_wait(parse_instruction(f"s_waitcnt {operand}", 1)) == wait


@pytest.mark.parametrize(
    "line",
    [
        "s_waitcnt",
        "s_waitcnt vmcnt(64)",
        "s_waitcnt vmcnt(-1)",
        "s_waitcnt vmcnt(0) nonsense",
        "s_waitcnt somewhere",
        "s_waitcnt_vscnt null, 0x0",
        "s_waitcnt_depctr 0xfffe",
        "s_sleep forever",
        "s_nop forever",
    ],
)
def test_what_cannot_be_read_is_refused(engine, line):
    with pytest.raises(AsmError):
        engine.load(kernel_text(f"\t{line}"))


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (".macro wait\n\ts_nop 3\n.endm\n\twait\n\twait", ["s_nop 3"] * 2),
        (".if 0\n\ts_nop 3\n.else\n\ts_nop 4\n.endif", ["s_nop 4"]),
        (".rept 2\n\ts_nop 3\n.endr", ["s_nop 3"] * 2),
        ("s_nop 3 /* and\n\ts_nop 4 */", ["s_nop 3"]),
        (".long 0xbf800003", ["s_nop 3"]),
        ("s_nop 3 + 1", ["s_nop 4"]),
        (".set three, 3\n\ts_nop three", ["s_nop 3"]),
    ],
)
def test_the_assembler_alone_reads_directives(engine, lines, code):
    kernel = engine.load(kernel_text(f"\t{lines}"))
    assert [i.text for i in kernel.decoded.instructions] == [*code, "s_endpgm"]


def as_field(match: re.Match[str]) -> int:
    """The number that a wait is encoded as."""
    wait = decode_wait(parse_instruction(match.group(0).strip(), 1))
    vector = 63 if wait.vector is None else wait.vector
    local = 15 if wait.local is None else wait.local
    return (vector & 15) | (vector & 48) << 10 | local << 8 | 0x70


WAITS = re.compile(r"s_waitcnt [^\n;]*")


def with_symbols(text: str) -> str:
    numbers = sorted({as_field(m) for m in WAITS.finditer(text)})
    symbols = "".join(f"\t.set wait_{n}, {n}\n" for n in numbers) + "\tsixteen = 8 * 2\n"
    text = WAITS.sub(lambda m: f"s_waitcnt wait_{as_field(m)}", text)
    return symbols + re.sub(r"\boffset:16\b", "offset:sixteen", text)


SPELLINGS = {
    "numbers": lambda t: WAITS.sub(lambda m: f"s_waitcnt {as_field(m)}", t),
    "hexadecimal": lambda t: WAITS.sub(lambda m: f"s_waitcnt {as_field(m):#x}", t),
    "symbols": with_symbols,
    "expressions": lambda t: WAITS.sub(lambda m: f"s_waitcnt ({as_field(m)} - 1) + 1", t),
    "comments": lambda t: WAITS.sub(lambda m: f"s_waitcnt /* * */ {as_field(m)} // x", t),
    "commas": lambda t: re.sub(r"(vmcnt\(\d+\)) (lgkmcnt)", r"\1, \2", t),
    "offsets": lambda t: re.sub(r"\boffset:(\d+)", lambda m: f"offset:{int(m[1]):#x}", t),
}


def cases():
    x = torch.randn(64, 1024)
    half = torch.randn(64, 64).half()
    return {
        "softmax": (
            compiled(kernels.softmax, ["*fp32", "*fp32", "i32"], BLOCK=1024),
            (64,),
            [x, torch.empty_like(x), 1024],
        ),
        "matmul": (
            compiled(
                kernels.matmul,
                ["*fp16"] * 3 + ["i32"] * 3,
                TILE_M=32,
                TILE_N=32,
                TILE_K=32,
                TOTAL=tl.float32,
            ),
            (2, 2),
            [half, half.clone(), torch.empty_like(half), 64, 64, 64],
        ),
        "transpose": (
            compiled(kernels.transpose, ["*fp32"] * 2 + ["i32"] * 2, TILE_M=32, TILE_N=32),
            (2, 32),
            [x, torch.empty(1024, 64), 64, 1024],
        ),
    }


def seen(engine, text, shared, grid, values):
    """Tables of audit and timing, modelled seconds and the outcome of an audit."""
    kernel = engine.load(text, shared=shared)
    tables = (
        audit_table(kernel.decoded),
        timing_tables(kernel.decoded, kernel.program.timing.figures),
    )
    result = launch(engine, kernel, grid, (256,), values, model_time=True, audit=True)
    return tables, result.seconds, result.fault


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("case", ["softmax", "matmul", "transpose"])
def test_another_spelling_costs_the_same(engine, case, spelling):
    (text, shared), grid, values = cases()[case]
    other = SPELLINGS[spelling](text)
    assert other != text or spelling in ("commas", "offsets")
    assert seen(engine, other, shared, grid, values) == seen(engine, text, shared, grid, values)


def test_a_wait_for_everything_is_not_free(engine):
    (text, shared), grid, values = cases()["softmax"]
    everything = WAITS.sub("s_waitcnt 0", text)
    assert (
        seen(engine, everything, shared, grid, values)[1]
        >= (seen(engine, text, shared, grid, values)[1])
    )


PAUSES = "\ts_sleep {count}\n"


@pytest.mark.parametrize(("count", "same_as"), [("-1", 127), ("0x7f", 127), ("0x80", 0)])
def test_a_pause_lasts_as_long_as_its_bits_say(engine, count, same_as):
    out = np.zeros(64, np.uint32)
    seconds = [
        launch(
            engine,
            engine.load(kernel_text(PAUSES.format(count=c) * 100)),
            (1,),
            (64,),
            [out],
            model_time=True,
        ).seconds
        for c in (count, same_as)
    ]
    assert seconds[0] == seconds[1]


LOADS = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	{first}
	global_load_dword v2, v1, s[4:5]
	s_cbranch_scc0 skip
	{second}
skip:
	{third}
	global_store_dword v1, v2, s[6:7]
"""
ALL, NONE = "s_waitcnt 0", "s_nop 0"


@pytest.mark.parametrize(
    ("waits", "proven"),
    [
        ((ALL, ALL, ALL), True),
        ((ALL, NONE, ALL), True),
        (("s_waitcnt lgkmcnt(0)", NONE, "s_waitcnt vmcnt(0)"), True),
        ((ALL, ALL, NONE), False),  # a way round the wait, which a launch may not take
        ((NONE, ALL, ALL), False),
        (("s_waitcnt vmcnt(0)", NONE, ALL), False),
        ((ALL, NONE, "s_waitcnt vmcnt(1)"), False),
        ((ALL, NONE, "s_waitcnt lgkmcnt(0)"), False),
    ],
)
def test_waits_are_proven_on_all_ways(engine, waits, proven):
    text = kernel_text(LOADS.format(first=waits[0], second=waits[1], third=waits[2]), arguments=2)
    assert engine.load(text).program.waits_everywhere is proven


LOOP = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_mov_b32 s8, 0
	s_waitcnt lgkmcnt(0)
	global_load_dword v2, v1, s[4:5]
again:
	global_load_dword v3, v1, s[4:5] offset:256
	s_waitcnt vmcnt({left})
	v_add_u32_e32 v4, v4, v2
	s_waitcnt vmcnt(0)
	v_mov_b32_e32 v2, v3
	{behind}
	s_add_i32 s8, s8, 1
	s_cmp_lt_i32 s8, 4
	s_cbranch_scc1 again
	s_waitcnt 0
	global_store_dword v1, v4, s[6:7]
"""


@pytest.mark.parametrize(
    ("left", "behind", "proven"),
    [
        (1, NONE, True),
        (2, NONE, False),
        (1, "global_load_dword v2, v1, s[4:5]", True),
        (2, "global_load_dword v2, v1, s[4:5]", False),
    ],
)
def test_waits_are_proven_round_loops(engine, left, behind, proven):
    text = kernel_text(LOOP.format(left=left, behind=behind), arguments=2)
    assert engine.load(text).program.waits_everywhere is proven


@pytest.mark.parametrize("case", ["softmax", "matmul", "transpose"])
def test_what_a_compiler_makes_is_proven(engine, case):
    (text, shared), _, _ = cases()[case]
    assert engine.load(text, shared=shared).program.waits_everywhere
    bare = WAITS.sub("s_nop 0", text)
    assert not engine.load(bare, shared=shared).program.waits_everywhere
