"""A busy machine is no verdict on a task: only what a program itself spends counts."""

import pytest

from kernel_gym.devices import meter
from kernel_gym.devices.meter import MachineOverloaded
from kernel_gym.imports.authoring.tracer import CodeError, ask_once
from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.imports.readers.base import UnsupportedTask

IDLE = "import threading\n\nthreading.Event().wait()\n"


def record(bench: ImportBench) -> object:
    options = {"style": "halves", "file": "idle.py", "line": 1, "functions": ["idle"], "most": 8}
    limits = {"seed": 0, "seconds": 30, "launch_instructions": 1000}
    return bench.run("record", {"idle.py": IDLE.encode()}, options | limits)


def test_a_program_that_waits_for_nothing_spends_its_time():
    with (
        ImportBench("sim:gfx942", timeout=1.0) as bench,
        pytest.raises(UnsupportedTask, match="slow: not done within 1 s"),
    ):
        record(bench)


def test_a_program_without_a_processor_gets_no_verdict(monkeypatch):
    monkeypatch.setattr(meter, "GUARD_SECONDS", 0.0)
    with ImportBench("sim:gfx942") as bench, pytest.raises(MachineOverloaded):
        record(bench)


def test_a_module_without_a_processor_gets_no_verdict(monkeypatch):
    monkeypatch.setattr(meter, "GUARD_SECONDS", 0.0)
    with pytest.raises(MachineOverloaded):
        ask_once("load")


def test_a_module_that_is_refused_still_says_why():
    with pytest.raises(CodeError):
        ask_once("load")
