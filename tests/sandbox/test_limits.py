"""The limits that SECURITY.md states are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernel_gym.devices import budget
from kernel_gym.devices import hip_build as compiler
from kernel_gym.devices.gpu import recording as gpu
from kernel_gym.devices.sim import session as sim

PAGE = Path(__file__).resolve().parents[2] / "SECURITY.md"
GIB = 1 << 30
SECONDS = {
    "host time: host code and compilers, all loads and calls together": (budget.HOST_SECONDS,),
    "processor time of the simulated GPU, all launches together": (budget.SIMULATED_SECONDS,),
    "wall time, everything together": (budget.WALL_SECONDS, budget.MAX_HELD_SECONDS),
    "one load": (sim.LOAD_SECONDS, gpu.LOAD_SECONDS),
    "one call": (sim.CALL_SECONDS, gpu.CALL_SECONDS),
    "one launch": (sim.MAX_LAUNCH_INSTRUCTIONS / 1e6,),
    "wall time, as protection of the machine": (budget.GUARD_SECONDS,),
    "processor time of one process of the worker": (
        sim.WORKER_LIMITS.cpu_seconds,
        gpu.WORKER_LIMITS.cpu_seconds,
    ),
}
"""The numbers of each row, in seconds; for a launch millions of instructions."""
SIZES = {
    "host memory, all processes and the simulated GPU together": (
        sim.FAMILY_MEMORY,
        gpu.FAMILY_MEMORY,
    ),
    "private memory of the worker": (sim.WORKER_LIMITS.memory, gpu.WORKER_LIMITS.memory),
    "in-memory files of the worker": (
        sim.WORKER_LIMITS.home_size,
        gpu.WORKER_LIMITS.home_size,
    ),
    "memory of the simulated GPU, and variables of its modules": (sim.MEMORY,),
    "memory of one compiler process": (compiler.LIMITS.memory, compiler.LIMITS.memory),
}
UNITS = {"GiB": GIB, "MiB": 1 << 20}


def rows() -> dict[str, str]:
    """The columns of the two devices of each row of the table."""
    table = PAGE.read_text(encoding="utf-8").partition("## Limits")[2]
    lines = (line.strip("|").split("|") for line in table.splitlines() if line.startswith("| "))
    return {cells[0].strip(): f"{cells[1]}|{cells[2]}" for cells in lines if len(cells) == 4}


def test_the_table_has_these_rows_and_that_of_processes():
    known = {*SECONDS, *SIZES, "processes of the worker", "limit"}
    assert set(rows()) == known


@pytest.mark.parametrize("name", SECONDS)
def test_times_are_those_of_the_code(name):
    stated = re.findall(r"(\d+) (?:s\b|million)", rows()[name])
    assert tuple(map(float, stated)) == SECONDS[name]


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_those_of_the_code(name):
    stated = re.findall(r"([\d.]+) (GiB|MiB)", rows()[name])
    assert tuple(float(number) * UNITS[unit] for number, unit in stated) == SIZES[name]


def test_processes_are_those_of_the_code():
    text = rows()["processes of the worker"]
    assert sim.WORKER_LIMITS.one_process
    limits = sim.WORKER_LIMITS.processes, gpu.WORKER_LIMITS.processes
    assert tuple(map(int, re.findall(r"\b(64|256)\b", text))) == limits
