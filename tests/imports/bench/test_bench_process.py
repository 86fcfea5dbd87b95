"""Benches in processes of their own."""

import os
import signal

import pytest

from kernel_gym.devices.base import InfraError
from kernel_gym.imports.bench.bench_process import BenchProcess
from kernel_gym.imports.bench.importing import import_suite
from kernel_gym.imports.manifest import ImportStatus, read_data
from kernel_gym.imports.readers.known import get_reader
from tests.imports.readers import suites


def test_a_task_is_imported_in_another_process(tmp_path):
    checkout = suites.tritonbench(tmp_path / "checkout")
    with BenchProcess("sim:gfx942") as bench:
        bench.open()
        steps = import_suite(get_reader("tritonbench-g"), checkout, [bench], tmp_path, "signs")
        (step,) = steps
    assert step.entry.status("sim:gfx942") is ImportStatus.ADMITTED, step.entry
    assert read_data("tritonbench-g", "signs", tmp_path)["stated"]


def test_a_process_that_ends_costs_no_verdict_and_is_started_again(tmp_path):
    checkout = suites.tritonbench(tmp_path / "checkout")
    reader = get_reader("tritonbench-g")
    (found,) = [one for one in reader.entries(checkout) if one.name == "raises"]
    with BenchProcess("sim:gfx942") as bench:
        bench.open()
        for pid in bench._pool._processes:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(InfraError, match="ended"):
            bench.verdict(found, reader, checkout, tmp_path, False)
        verdict = bench.verdict(found, reader, checkout, tmp_path, False)
    assert verdict.status is ImportStatus.UNSUPPORTED
