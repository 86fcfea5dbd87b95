"""`kernel_gym.enable_simulation()`: ordinary GPU programs on a CPU build of PyTorch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torch_device.snippets import SNIPPETS

HEAD = """
import json, sys, traceback
import kernel_gym
simulation = kernel_gym.enable_simulation(threads=1)
import torch, triton, triton.language as tl

@triton.jit
def doubling(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * 2, i < n)
"""
DRIVER = """
from tests.torch_device.snippets import SNIPPETS
reports = {}
for name, text in SNIPPETS.items():
    try:
        exec(text, dict(globals()))
        reports[name] = ""
    except BaseException:
        reports[name] = traceback.format_exc()
print(json.dumps(reports))
"""
ROOT = Path(__file__).parents[2]


def run(folder, text):
    path = folder / "program.py"
    path.write_text(HEAD + text)  # Triton reads kernels from a file
    command = [sys.executable, str(path)]
    return subprocess.run(
        command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    done = run(tmp_path_factory.mktemp("programs"), DRIVER)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_program_for_a_gpu_runs(found, name):
    assert found[name] == ""


def test_a_program_that_trained_ends_well(tmp_path):
    """PyTorch frees gradients on a thread of its own, also while the interpreter ends."""
    text = """
x = torch.randn(4, device="cuda", requires_grad=True)
(x * 2).sum().backward()
print(simulation.seconds > 0, simulation.launches)
"""
    done = run(tmp_path, text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True []\n", "")


def test_what_ran_is_reported(tmp_path):
    text = """
x = torch.ones(64, device="cuda")
for _ in range(2):
    doubling[(1,)](x, torch.empty_like(x), 64, BLOCK=64)
kernel = simulation.kernels["doubling"]
print(kernel["launches"], kernel["grid"], 0 < kernel["seconds"] < simulation.seconds)
print(len(simulation.launches), "bound_by" in kernel["profile"], simulation.findings)
print(kernel_gym.enable_simulation() is simulation)
"""
    done = run(tmp_path, text)
    assert done.stdout == "2 [1, 1, 1] True\n2 True []\nTrue\n", done.stderr


def test_it_must_come_before_pytorch(tmp_path):
    path = tmp_path / "late.py"
    path.write_text("import torch, kernel_gym.sim\nkernel_gym.enable_simulation()")
    done = subprocess.run([sys.executable, str(path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "before `import torch`" in done.stderr
