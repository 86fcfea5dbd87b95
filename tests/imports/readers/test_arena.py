"""Tasks of AgentKernelArena that ask for FlyDSL are listed as tasks in Triton."""

from __future__ import annotations

import pytest

from kernel_gym.imports.readers.arena import ArenaReader
from kernel_gym.imports.readers.base import FoundTask, Unsupported
from kernel_gym.tasks.names import Mode
from tests.imports.readers import suites

CONFIG = "source_file_path: [kernel.py]\ncorrectness_command: [python3 runner.py --correctness]\n"


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    files = {
        "tasks/torch2flydsl/scale/config.yaml": CONFIG,
        "tasks/torch2flydsl/scale/model.py": suites.SCALE,
        "tasks/torch2flydsl/scale/kernel.py": "def flydsl_scale(*args): raise NotImplementedError",
        "tasks/torch2flydsl/empty/config.yaml": CONFIG,
        "tasks/triton2flydsl/aiter/add/config.yaml": CONFIG,
        "tasks/triton2flydsl/aiter/add/kernel.py": suites.ADD,
        "tasks/triton2flydsl/aiter/add/runner.py": "from kernel import add\nadd(1, 2)",
        "tasks/flydsl2flydsl/norm/config.yaml": CONFIG,
        "src/main.py": "",
    }
    checkout = suites.write(tmp_path_factory.mktemp("arena"), files)
    return {entry.name: entry for entry in ArenaReader().entries(checkout)}


def test_a_module_without_a_kernel_is_a_task_from_pytorch(entries):
    task = entries["torch2flydsl/scale"]
    assert isinstance(task, FoundTask)
    assert (task.mode, task.details["class"]) == (Mode.TORCH2TRITON, "Scale")
    assert task.files == ("tasks/torch2flydsl/scale/model.py",)


def test_a_kernel_in_triton_is_the_start_kernel(entries):
    task = entries["triton2flydsl/aiter/add"]
    assert isinstance(task, FoundTask)
    assert (task.mode, task.details["functions"]) == (Mode.TRITON2TRITON, ["add"])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("torch2flydsl/empty", "FlyDSL: it has no PyTorch module"),
        ("flydsl2flydsl/norm", "FlyDSL: its start kernel is spread over several files"),
    ],
)
def test_what_is_no_task_has_a_reason(entries, name, reason):
    assert isinstance(entries[name], Unsupported)
    assert entries[name].reason == reason
