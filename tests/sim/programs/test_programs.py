"""Hundreds of small Triton programs against PyTorch in double precision."""

from __future__ import annotations

import pytest

from tests.sim.programs.fused import fused_programs
from tests.sim.programs.memory import atomics, products
from tests.sim.programs.pointwise import pointwise_programs
from tests.sim.programs.program import failures, write_module
from tests.sim.programs.shaped import histograms, moves, reductions

PROGRAMS = [
    *pointwise_programs(),
    *reductions(),
    *moves(),
    *histograms(),
    *products(),
    *atomics(),
    *fused_programs(120),
]
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
