"""Candidates in FlyDSL: the example kernels pass, and attacks by its host code are refused."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.judge.screen import screen
from kernel_gym.records import Outcome
from kernel_gym.sandbox.failures import BuildError
from kernel_gym.tasks import get_task
from kernel_gym.worker.recording import flydsl

KERNELS = Path(__file__).parents[3] / "examples" / "flydsl"
NAMES = sorted(path.stem for path in KERNELS.glob("*.py"))
PLAYED = ("add", "softmax")
"""Problems whose kernel each run plays."""
KEPT = "out = torch.empty(x.shape, dtype=x.dtype, device=x.device)"
LAUNCHED = "add_kernel(x, y, out).launch(grid=(rows, "

needs_flydsl = pytest.mark.skipif(
    importlib.util.find_spec("flydsl") is None, reason="FlyDSL is not installed"
)


def source(name: str) -> str:
    """Returns an example kernel."""
    return (KERNELS / f"{name}.py").read_text(encoding="utf-8")


def changed(name: str, old: str, new: str) -> str:
    """Returns an example kernel with another text in one place."""
    text = source(name)
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device="sim:gfx942", seed=0) as made:
        yield made


@needs_flydsl
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [n if n in PLAYED else pytest.param(n, marks=pytest.mark.sweep) for n in NAMES]
)
def test_the_example_kernels_pass(evaluator, name):
    result = evaluator.evaluate(get_task(f"triton2triton/{name}"), source(name))
    assert (result.outcome, result.message) == (Outcome.PASSED, "")
    assert all(workload.launches == 1 for workload in result.workloads)


def test_there_are_kernels_for_twelve_problems():
    assert len(NAMES) >= 12


ATTACKS = {
    "a sum without its last column": (
        changed("add", "if col < cols:", "if col < cols - 1:"),
        "wrong_values",
        "",
    ),
    "no barrier before shared memory is used again": (
        changed("softmax", "    fx.barrier()\n", ""),
        "runtime_error",
        "at candidate.py:26: ds_write_b32",
    ),
    "an operator of PyTorch": (
        changed("add", "launch(x, y, out)\n    return out", "return x + y"),
        "runtime_error",
        "add",
    ),
    "a copy to the host": (
        changed("add", "launch(x, y, out)\n", "launch(x.cpu().cuda(), y, out)\n"),
        "runtime_error",
        "reading device memory on the host is refused",
    ),
    "compiled host code that computes": (
        changed("add", LAUNCHED, "out[0, 0] = x[0, 0] + y[0, 0]\n    " + LAUNCHED),
        "runtime_error",
        "SIGSEGV",
    ),
    "an output that is kept": (
        changed("add", KEPT, "out = KEPT.setdefault(x.shape, torch.empty_like(x))")
        + "\n\nKEPT = {}\n",
        "runtime_error",
        "",
    ),
    "other launches later": (
        changed(
            "add",
            "    launch(x, y, out)\n",
            "    launch(x, y if len(CALLS) < 9 else x, out)\n    CALLS.append(0)\n",
        )
        + "\n\nCALLS = []\n",
        "runtime_error",
        "two recordings of one call differ",
    ),
    "a process, by a module that FlyDSL has imported": (
        changed("add", "BLOCK = 256\n", "BLOCK = 256\njit_function.os.fork()\n").replace(
            "import torch\n", "import torch\nfrom flydsl.compiler import jit_function\n"
        ),
        "runtime_error",
        "Operation not permitted",
    ),
    "no such operation": (
        changed("add", "x[row, col] + y[row, col]", "fx.sum_of(x[row, col], y[row, col])"),
        "runtime_error",
        "sum_of",
    ),
}


@needs_flydsl
@pytest.mark.slow
@pytest.mark.parametrize(("text", "outcome", "message"), ATTACKS.values(), ids=ATTACKS)
def test_a_kernel_that_is_wrong_or_cheats_is_refused(evaluator, text, outcome, message):
    name = "softmax" if "def softmax(" in text else "add"
    result = evaluator.evaluate(get_task(f"triton2triton/{name}"), text)
    assert result.outcome == Outcome(outcome), result.message
    assert message in result.message


TUNED = """
@autotune(configs=[Config(BLOCK=64), Config(BLOCK=256)], key=[])
@flyc.jit
def launch(x: fx.Tensor, y: fx.Tensor, out: fx.Tensor, BLOCK: fx.Constexpr[int]):"""


@needs_flydsl
@pytest.mark.slow
def test_its_autotuner_gets_modelled_times(evaluator):
    text = source("add").replace(
        "out: fx.Tensor):", "out: fx.Tensor, BLOCK: fx.Constexpr[int]):", 1
    )
    text = text.replace("add_kernel(x, y, out).launch", "add_kernel(x, y, out, BLOCK).launch")
    host = "@flyc.jit\ndef launch(x: fx.Tensor, y: fx.Tensor, out: fx.Tensor):"
    assert host in text
    text = text.replace(host, TUNED.lstrip()).replace(
        "import torch\n", "import torch\nfrom flydsl.autotune import Config, autotune\n"
    )
    result = evaluator.evaluate(get_task("triton2triton/add"), text)
    assert (result.outcome, result.message) == (Outcome.PASSED, "")
    assert all(workload.launches == 1 for workload in result.workloads)


def test_host_code_of_a_candidate_is_screened():
    assert screen(source("softmax"), "triton").rejection == ""
    assert "import of 'ctypes'" in screen("import ctypes\n" + source("add"), "triton").rejection
    patched = source("add") + "\nflyc.jit = fx.cos\n"
    assert "assignment into flyc.jit" in screen(patched, "triton").rejection


@pytest.mark.parametrize(
    ("missing", "line"),
    [
        ("flydsl", r"^flydsl is missing; pip install 'kernel-gym\[flydsl\]'$"),
        ("kernel_gym.simulated_rocm._hip_runtime", r"^the HIP runtime is not built: install"),
    ],
)
def test_what_is_missing_is_named_in_one_line_with_the_cure(monkeypatch, missing, line):
    find = importlib.util.find_spec
    hidden = lambda name: None if name == missing else find(name)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    with pytest.raises(BuildError, match=line):
        flydsl.check_installed()


@needs_flydsl
def test_another_version_is_refused_with_both_numbers(monkeypatch):
    flydsl.check_installed()
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.2.0")
    with pytest.raises(BuildError, match=r"^FlyDSL 0\.2\.0 is installed, expected 0\.5\.x; pip"):
        flydsl.check_installed()
