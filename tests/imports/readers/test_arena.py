"""Tasks of AgentKernelArena that ask for FlyDSL are listed as tasks in Triton."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kernel_gym.imports.readers.arena import ArenaReader, runs_on
from kernel_gym.imports.readers.base import FoundTask, Unsupported, UnsupportedTask
from kernel_gym.tasks.names import Mode
from tests.imports.readers import suites

CONFIG = "source_file_path: [kernel.py]\ncorrectness_command: [python3 runner.py --correctness]\n"
LOSS = "from torch import nn\n\n\nclass Loss(nn.CrossEntropyLoss):\n    pass\n"
SKIPPED = "platform_support: {status: skip, skip_reason: needs two GPUs}\n"


LAUNCHERS = "FlyDSL: its tests call launchers, not a function of tensors in one file"


def requires(arch):
    return f"platform_support:\n  status: supported\n  required_arch: {arch}\n"


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    files = {
        "tasks/torch2flydsl/scale/config.yaml": CONFIG,
        "tasks/torch2flydsl/scale/model.py": suites.SCALE,
        "tasks/torch2flydsl/scale/kernel.py": "def flydsl_scale(*args): raise NotImplementedError",
        "tasks/torch2flydsl/empty/config.yaml": CONFIG,
        "tasks/torch2flydsl/loss/config.yaml": CONFIG,
        "tasks/torch2flydsl/loss/model.py": LOSS,
        "tasks/torch2flydsl/plain/config.yaml": CONFIG,
        "tasks/torch2flydsl/plain/model.py": "class Plain(object): pass\n",
        "tasks/triton2flydsl/aiter/add/config.yaml": CONFIG,
        "tasks/triton2flydsl/aiter/add/kernel.py": suites.ADD,
        "tasks/triton2flydsl/aiter/add/runner.py": "from kernel import add\nadd(1, 2)",
        "tasks/hip2hip/others/knn/config.yaml": CONFIG,
        "tasks/hip2hip/others/knn/src/knn.cpp": "PYBIND11_MODULE(knn, m) {}",
        "tasks/hip2hip/others/product/config.yaml": CONFIG,
        "tasks/hip2hip/others/product/product.hip": "#include <cmath>\nint main(int, char**) {}\n",
        "tasks/hip2hip/others/bare/config.yaml": CONFIG,
        "tasks/hip2hip/others/bare/bare.hip": "// int main() is elsewhere\n",
        "tasks/flydsl2flydsl/norm/config.yaml": CONFIG,
        "tasks/flydsl2flydsl/gemm/config.yaml": CONFIG + requires("gfx950"),
        "tasks/triton2triton/wide/config.yaml": CONFIG + requires("gfx950"),
        "tasks/triton2triton/wide/kernel.py": suites.ADD,
        "tasks/triton2triton/wide/runner.py": "from kernel import add\nadd(1, 2)",
        "tasks/triton2triton/broken/config.yaml": CONFIG + SKIPPED,
        "src/main.py": "",
    }
    checkout = suites.write(tmp_path_factory.mktemp("arena"), files)
    return {entry.name: entry for entry in ArenaReader().entries(checkout)}


def test_a_module_without_a_kernel_is_a_task_from_pytorch(entries):
    task = entries["torch2flydsl/scale"]
    assert isinstance(task, FoundTask)
    assert (task.mode, task.details["class"]) == (Mode.TORCH2TRITON, "Scale")
    assert task.files == ("tasks/torch2flydsl/scale/model.py",)


def test_a_module_may_extend_another_module_of_pytorch(entries):
    task = entries["torch2flydsl/loss"]
    assert isinstance(task, FoundTask)
    assert task.details["class"] == "Loss"


def test_a_kernel_in_triton_is_the_start_kernel(entries):
    task = entries["triton2flydsl/aiter/add"]
    assert isinstance(task, FoundTask)
    assert (task.mode, task.details["functions"]) == (Mode.TRITON2TRITON, ["add"])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("torch2flydsl/empty", "FlyDSL: it has no PyTorch module"),
        ("torch2flydsl/plain", "FlyDSL: its PyTorch file defines no module"),
        (
            "hip2hip/others/knn",
            "HIP: it has no PyTorch module; the bindings of its kernel are in another file",
        ),
        (
            "hip2hip/others/product",
            "HIP: it has no PyTorch module; it is a program with a main function",
        ),
        ("hip2hip/others/bare", "HIP: it has no PyTorch module"),
        ("flydsl2flydsl/norm", LAUNCHERS),
        (
            "flydsl2flydsl/gemm",
            f"{LAUNCHERS}; it requires gfx950",
        ),
        ("triton2triton/broken", "platform: the suite skips it: needs two GPUs"),
    ],
)
def test_what_is_no_task_has_a_reason(entries, name, reason):
    assert isinstance(entries[name], Unsupported)
    assert entries[name].reason == reason


def test_a_task_for_another_gpu_is_refused_when_it_is_imported(entries, tmp_path):
    task = entries["triton2triton/wide"]
    assert isinstance(task, FoundTask)
    with pytest.raises(UnsupportedTask, match="it requires gfx950, the device is sim:gfx942"):
        ArenaReader().prepare(tmp_path, task, SimpleNamespace(device="sim:gfx942"))


@pytest.mark.parametrize(
    ("arch", "device", "runs"),
    [
        ("", "cuda:0", True),
        ("gfx950", "sim:gfx950", True),
        ("gfx950", "sim:gfx942", False),
        ("gfx950", "rocm:0", True),
        ("gfx950", "cuda:0", False),
    ],
)
def test_a_device_may_be_the_required_gpu(arch, device, runs):
    assert runs_on(arch, device) is runs
