"""Hundreds of small Triton programs against PyTorch in double precision."""

from __future__ import annotations

from dataclasses import replace

import pytest
import triton

from kernel_gym.triton_versions import numbers
from tests.sim.programs.fused import fused_programs
from tests.sim.programs.memory import atomics, products
from tests.sim.programs.pointwise import pointwise_programs
from tests.sim.programs.program import check, failures, write_module
from tests.sim.programs.shaped import histograms, moves, reductions

ALL = [
    *pointwise_programs(),
    *reductions(),
    *moves(),
    *histograms(),
    *products(),
    *atomics(),
    *fused_programs(60),
]
NEEDS = {
    "rint_fp32": (3, 7),
    "rint_fp64": (3, 7),
    "dot17_fp64_16x16x16_w1": (3, 8),
    "dot18_fp64_32x32x16_w4": (3, 8),
    "running_max1_bf16_64x16_w1": (3, 9),
    "exchange_i32": (3, 9),
    "exchange_i64": (3, 9),
    "exchange_fp32": (3, 9),
    "fused_26": (3, 9),
}
"""Programs that an older Triton cannot compile, by the first version that can."""
PROGRAMS = [p for p in ALL if NEEDS.get(p.name, (0, 0)) <= numbers(triton.__version__)]
CHUNK = 10
CHUNKS = [PROGRAMS[i : i + CHUNK] for i in range(0, len(PROGRAMS), CHUNK)]


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)
    return write_module(PROGRAMS, tmp_path_factory.mktemp("programs"), "generated_programs")


@pytest.mark.parametrize("programs", CHUNKS, ids=lambda chunk: f"{chunk[0].name}-{chunk[-1].name}")
def test_programs(programs, module, engine):
    wrong = failures(programs, module, engine)
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("program", PROGRAMS[::49], ids=lambda program: program.name)
def test_an_audit_finds_nothing_in_honest_programs(program, module, engine):
    check(program, module, engine, audit=True)


def test_only_a_few_programs_need_a_later_triton():
    assert set(NEEDS) <= {program.name for program in ALL}
    assert len(PROGRAMS) >= len(ALL) - len(NEEDS)


def test_enough_programs():
    assert len(PROGRAMS) >= 300
    assert len({program.source for program in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize("name", ["exp_fp32", "add_i32", "sort_fp32", "atomic_add_i64", "fused_3"])
def test_a_wrong_result_is_named_with_its_source(name, module, engine):
    program = next(program for program in PROGRAMS if program.name == name)
    change = "+ (torch.arange(out.numel()) == 3).view(out.shape)"
    wrong = replace(program, meaning=f"{program.meaning}\nout = out {change}\n")
    (message,) = failures([wrong], module, engine)
    assert message.startswith(f"{name}: AssertionError")
    assert program.source in message


def test_an_access_past_the_end_is_a_failure(module, engine):
    program = next(program for program in PROGRAMS if program.name == "add_fp32")
    (out,) = program.outputs
    shorter = replace(out, shape=(out.shape[0] - 1,))
    wrong = replace(program, outputs=(shorter,), meaning="out = (xs + ys)[:-1]")
    (message,) = failures([wrong], module, engine)
    assert "write of" in message
    assert "out of bounds" in message
