"""`pytest --simulated-gpu`: the plugin in a pytest of its own."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.programs.running import KERNEL, write

PLUGIN = "kernel_gym.programs.pytest_plugin"
TESTS = f"""{KERNEL}
import pytest

def launch(n):
    x, out = torch.randn(200, device="cuda"), torch.empty(256, device="cuda")
    copy[(1,)](x, out, n, BLOCK=256)
    torch.testing.assert_close(out[:200], x)

def test_before():
    launch(200)

def test_that_hides_its_fault():
    with pytest.raises(Exception):
        launch(256)

def test_after():
    launch(200)

def test_a_child():
    import subprocess
    code = "import torch; torch.ones(4, device='cuda')"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
"""


def pytest_in(folder, *words, **variables):
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", *words]
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}
    environment = os.environ | own | variables
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_tests_run_on_the_simulated_gpu_and_a_fault_fails_its_test_alone(tmp_path):
    write(tmp_path, "conftest.py", "import torch\n")  # the device must come before
    write(tmp_path, "test_kernels.py", TESTS)
    done = pytest_in(tmp_path, "--simulated-gpu", "-v")
    assert done.returncode == 1, done.stdout + done.stderr
    assert dict(re.findall(r"^\S+::(\w+) ([A-Z]+)", done.stdout, re.MULTILINE)) == {
        "test_before": "PASSED",
        "test_that_hides_its_fault": "FAILED",
        "test_after": "PASSED",
        "test_a_child": "PASSED",
    }
    assert "a kernel faulted on the simulated GPU: read of 4 bytes" in done.stdout
    assert "copy: " in done.stdout


FAULT = """
import torch, triton, triton.language as tl

@triton.jit
def copy(x, out):
    tl.store(out + tl.arange(0, 64) + 4096, tl.load(x + tl.arange(0, 64)))

def test_fault():
    x = torch.ones(64, device="cuda")
    copy[(1,)](x, torch.empty_like(x), num_warps=1)
"""


@pytest.mark.sweep
def test_a_failure_shows_the_launch_and_no_frame_of_ours(tmp_path):
    write(tmp_path, "conftest.py", "import torch\n")
    write(tmp_path, "test_kernels.py", FAULT)
    done = pytest_in(tmp_path, "--simulated-gpu")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "copy[(1,)](x, torch.empty_like(x), num_warps=1)" in done.stdout
    places = re.findall(r"^(\S+\.py):\d+: ", done.stdout, re.MULTILINE)
    assert [place for place in places if "kernel_gym/" in place] == []


def test_without_the_option_nothing_changes(tmp_path):
    text = "def test_gpu():\n    import torch\n    assert not torch.cuda.is_available()\n"
    write(tmp_path, "test_kernels.py", text)
    done = pytest_in(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "simulated" not in done.stdout


def test_an_unknown_device_is_a_usage_error(tmp_path):
    done = pytest_in(tmp_path, "--simulated-gpu", KERNEL_GYM_SIM_DEVICE="sim:gfx1")
    assert done.returncode == 4
    assert "found sim:gfx1, expected sim:gfx942, sim:gfx90a" in done.stderr


def test_the_plugin_is_an_entry_point():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert PLUGIN in project["project"]["entry-points"]["pytest11"].values()
