"""Candidates in TileLang: the example kernels pass, and attacks by its host code are refused."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

import pytest

from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.evaluator import Evaluator
from kernel_gym.judge.screen import screen
from kernel_gym.records import Outcome
from kernel_gym.sandbox.failures import BuildError
from kernel_gym.tasks import get_task
from kernel_gym.worker.recording import tilelang

KERNELS = Path(__file__).parents[3] / "examples" / "tilelang"
NAMES = sorted(path.stem for path in KERNELS.glob("*.py"))
PLAYED = ("add", "matmul_nt")
"""Problems whose kernel each run plays."""
CALLED = "add_kernel()(x, y, out)"
KEPT = "out = torch.empty(x.shape, dtype=x.dtype, device=x.device)"

needs_tilelang = pytest.mark.skipif(
    importlib.util.find_spec("tilelang") is None
    or not isinstance(hip_toolchain("gfx942"), HipToolchain),
    reason="TileLang or the HIP toolchain is not installed",
)


def source(name: str) -> str:
    """Returns an example kernel."""
    return (KERNELS / f"{name}.py").read_text(encoding="utf-8")


def changed(old: str, new: str) -> str:
    """Returns the sum of two matrices with another text in one place."""
    text = source("add")
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device="sim:gfx942", seed=0) as made:
        yield made


@needs_tilelang
@pytest.mark.slow
@pytest.mark.timeout(600)  # its templates are compiled once on a machine
@pytest.mark.parametrize(
    "name", [n if n in PLAYED else pytest.param(n, marks=pytest.mark.sweep) for n in NAMES]
)
def test_the_example_kernels_pass(evaluator, name):
    result = evaluator.evaluate(get_task(f"triton2triton/{name}"), source(name))
    assert (result.outcome, result.message) == (Outcome.PASSED, "")
    assert all(workload.launches == 1 for workload in result.workloads)


def test_there_are_kernels_for_eight_problems():
    assert len(NAMES) >= 8


ATTACKS = {
    "a sum without its last column": (
        changed("if col < cols:", "if col < cols - 1:"),
        "wrong_values",
        "",
    ),
    "an operator of PyTorch": (
        changed(CALLED, "add_kernel()\n    return x + y"),
        "runtime_error",
        "add",
    ),
    "an output that is kept": (
        changed(KEPT, "out = KEPT.setdefault(x.shape, torch.empty_like(x))") + "\n\nKEPT = {}\n",
        "runtime_error",
        "",
    ),
    "a process, by a module that TileLang has imported": (
        changed("BLOCK = 1024\n", "BLOCK = 1024\nlibgen.subprocess.os.fork()\n").replace(
            "import torch\n", "import torch\nfrom tilelang.jit.adapter import libgen\n"
        ),
        "runtime_error",
        "Operation not permitted",
    ),
    "an argument too few": (
        changed(CALLED, "add_kernel()(x, y)"),
        "runtime_error",
        "Expected 3 inputs, got 2",
    ),
}


@needs_tilelang
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("text", "outcome", "message"), ATTACKS.values(), ids=ATTACKS)
def test_a_kernel_that_is_wrong_or_cheats_is_refused(evaluator, text, outcome, message):
    result = evaluator.evaluate(get_task("triton2triton/add"), text)
    assert result.outcome == Outcome(outcome), result.message
    assert message in result.message


@needs_tilelang
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_kernels_of_one_name_are_told_apart(evaluator):
    """Both are `main_kernel`. The first leaves zeros behind, which the second overwrites."""
    text = source("add").replace("def add_kernel():", "def add_kernel(sign):")
    text = text.replace("x[row, col] + y[row, col]", "x[row, col] + y[row, col] * sign")
    text = text.replace(CALLED, "add_kernel(-1)(x, y, out)\n    add_kernel(1)(x, y, out)")
    result = evaluator.evaluate(get_task("triton2triton/add"), text)
    assert (result.outcome, result.message) == (Outcome.PASSED, "")
    assert all(workload.launches == 2 for workload in result.workloads)


def tuned(*threads: int) -> str:
    """Returns a sum of two matrices whose number of threads TileLang's autotuner chooses."""
    configs = f"tilelang.autotune(configs={[{'threads': number} for number in threads]})"
    text = changed("@tilelang.jit", f"@{configs}\n@tilelang.jit")
    text = text.replace("def add_kernel():", "def add_kernel(threads=128):")
    text = text.replace("threads=256", "threads=threads")
    text = text.replace("import torch\n", "import torch\nfrom tilelang.autotuner import AUTO\n")
    text = text.replace("AUTO", "set_autotune_inputs")
    called = (
        "with set_autotune_inputs(x, y, out):\n        kernel = add_kernel()\n    kernel(x, y, out)"
    )
    return text.replace(CALLED, called)


@needs_tilelang
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_autotuner_leaves_no_launch_behind(evaluator):
    result = evaluator.evaluate(get_task("triton2triton/add"), tuned(64, 1024))
    assert (result.outcome, result.message) == (Outcome.PASSED, "")
    assert all(workload.launches == 1 for workload in result.workloads)


@needs_tilelang
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_autotuner_chooses_by_time_and_not_by_order(evaluator):
    told = "    raise ValueError(kernel.config, kernel.latency)\n    kernel(x, y, out)"
    chosen = [
        evaluator.evaluate(
            get_task("triton2triton/add"), tuned(*order).replace("    kernel(x, y, out)", told)
        ).message
        for order in ((64, 1024), (1024, 64))
    ]
    assert chosen[0] == chosen[1]
    assert "'threads': 1024" in chosen[0]


@needs_tilelang
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_lines_are_those_of_the_text_that_tilelang_wrote(evaluator):
    text = source("transpose")
    option = 'tilelang.jit(pass_configs={"tl.disable_thread_storage_sync": True})'
    racing = text.replace("tilelang.jit", option, 1)
    assert racing != text
    result = evaluator.evaluate(get_task("triton2triton/transpose"), racing)
    assert result.outcome is not Outcome.PASSED
    assert "race" in result.message
    assert "written_by_tilelang.hip:" in result.message
    assert "candidate" not in result.message


@needs_tilelang
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_the_compiler_of_hip_refuses_is_a_compile_error(evaluator):
    text = changed("x[row, col] + y[row, col]", 'T.call_extern("float16", "unknown", x[row, col])')
    result = evaluator.evaluate(get_task("triton2triton/add"), text)
    assert result.outcome is Outcome.COMPILE_ERROR
    assert "'unknown'" in result.message
    assert "written_by_tilelang.hip:" in result.message + result.detail


def test_host_code_of_a_candidate_is_screened():
    assert screen(source("add"), "triton").rejection == ""
    assert "import of 'ctypes'" in screen("import ctypes\n" + source("add"), "triton").rejection
    patched = source("add") + "\ntilelang.jit = print\n"
    assert "assignment into tilelang.jit" in screen(patched, "triton").rejection


@pytest.mark.parametrize(
    ("missing", "line"),
    [
        ("tilelang", r"^tilelang is missing; pip install 'kernel-gym\[tilelang\]'$"),
        ("kernel_gym.simulated_rocm._hip_runtime", r"^the HIP runtime is not built: install"),
    ],
)
def test_what_is_missing_is_named_in_one_line_with_the_cure(monkeypatch, missing, line):
    find = importlib.util.find_spec
    hidden = lambda name: None if name == missing else find(name)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    with pytest.raises(BuildError, match=line):
        tilelang.check_installed()


@needs_tilelang
def test_another_version_is_refused_with_both_numbers(monkeypatch):
    tilelang.check_installed()
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.1.9")
    with pytest.raises(BuildError, match=r"^TileLang 0\.1\.9 is installed, expected 0\.1\.15; pip"):
        tilelang.check_installed()
