"""Real checkouts, where a folder of them is named: how many tasks the readers find."""

import os
from pathlib import Path

import pytest

from kernel_gym.imports.readers.known import readers_of

VARIABLE = "KERNEL_GYM_CHECKOUTS"
FOUND = {
    "TritonBench": {"tritonbench-g": 184, "tritonbench-t": 166},
    "GEAK-eval": {"geak-g": 184, "geak-rocm": 31},
    "KernelBenchX": {"kernelbenchx": 176},
    "AgentKernelArena": {"agentkernelarena": 426},
}


@pytest.mark.parametrize("name", FOUND)
def test_all_tasks_of_a_checkout_are_found(name):
    folder = Path(os.environ.get(VARIABLE, "")) / name
    if VARIABLE not in os.environ or not folder.is_dir():
        pytest.skip(f"{VARIABLE} names no folder with a checkout {name}")
    counts = {reader.suite: len(list(reader.entries(folder))) for reader in readers_of(folder)}
    assert counts == FOUND[name]
