"""The generated Triton programs on every target: right, or refused by the compiler and counted.

`pytest -m sweep -s tests/sim/programs/test_targets.py` runs all of them and prints the figures;
otherwise a few of each family run on the two targets that the other tests leave out.
"""

from __future__ import annotations

import re

import pytest

from kernel_gym.sim.asm.targets import TARGETS
from tests.sim.programs.program import compile_program, failures, write_module
from tests.sim.programs.test_programs import PROGRAMS

STEP = 25
REFUSED = re.compile(r"input_precision must be one of .* Got tf32")  # only gfx942 has xf32


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    return write_module(PROGRAMS, tmp_path_factory.mktemp("targets"), "programs_of_targets")


def refused_by_triton(program, module, arch):
    """Why the compiler has no code for a program; empty if it has."""
    try:
        compile_program(program, module, arch)
    except Exception as error:
        return f"{type(error).__name__}: {error}".strip().splitlines()[-1]
    return ""


def run(programs, module, engine, arch):
    """Names of the programs that the compiler refuses with its reason, and what went wrong."""
    refused = {p.name: refused_by_triton(p, module, arch) for p in programs}
    refused = {name: reason for name, reason in refused.items() if reason}
    runnable = [p for p in programs if p.name not in refused]
    return refused, failures(runnable, module, engine, arch)


@pytest.mark.parametrize(("arch", "first"), [("gfx90a", 0), ("gfx950", STEP // 2)])
def test_a_sample_is_right(arch, first, module, engine):
    refused, wrong = run(PROGRAMS[first::STEP], module, engine, arch)
    assert not wrong, "\n\n".join(wrong)
    assert all(REFUSED.search(reason) for reason in refused.values()), refused


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("arch", TARGETS)
def test_all_are_right(arch, module, engine):
    refused, wrong = run(PROGRAMS, module, engine, arch)
    right = len(PROGRAMS) - len(refused) - len(wrong)
    print(f"\n{arch}: {right} of {len(PROGRAMS)} right, refused by Triton: {refused}")
    assert not wrong, "\n\n".join(wrong)
    assert all(REFUSED.search(reason) for reason in refused.values()), refused
