"""A file of one's own with its tests becomes a task by recording the calls."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.imports.readers.base import CheckoutError, FoundTask, Unsupported
from kernel_gym.imports.readers.known import get_reader
from kernel_gym.imports.readers.own_files import OwnReader, parse_command
from kernel_gym.imports.recorded.problem import Origin, RecordedProblem
from kernel_gym.imports.recorded.templates import CallTemplate
from kernel_gym.imports.upstream import main as upstream
from kernel_gym.sandbox.failures import BuildError
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.prompting import prompt
from kernel_gym.tasks.task import Task
from kernel_gym.worker.recording import flydsl

KERNEL = Path(__file__).parents[3] / "examples" / "record"
EXTENSION = KERNEL.with_name("record_hip")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest test_x.py", ("pytest", "test_x.py", [])),
        ("python -m pytest -q tests/test_x.py", ("pytest", "tests/test_x.py", [])),
        ("python3.11 run.py --all 3", ("runner", "run.py", ["--all", "3"])),
    ],
)
def test_commands(command, expected):
    assert parse_command(command) == expected


@pytest.mark.parametrize(
    "command", ["", "pytest", "make test", "./a.out", "pytest 'x.py", "sh x.py"]
)
def test_other_commands_are_refused(command):
    with pytest.raises(CheckoutError, match="pytest test_x"):
        parse_command(command)


def test_the_functions_that_the_tests_use_are_recorded():
    (found,) = OwnReader("own-x", "swish_gate.py", "pytest test_swish_gate.py").entries(KERNEL)
    assert isinstance(found, FoundTask)
    assert found.details["functions"] == ["swish_gate"]
    assert set(found.files) == {"swish_gate.py", "test_swish_gate.py"}


@pytest.mark.parametrize(
    ("kernel", "test", "reason"),
    [
        ("def f(x): return x", "from k import f\nf(1)", "no kernel"),
        (
            "from torch.utils.cpp_extension import load\nf = load('f', 'f.hip').f",
            "from k import f\nf(1)",
            "extension: k.py builds one of files; a candidate is one file",
        ),
        ("import triton\n@triton.jit\ndef f(x): pass", "print(1)", "no call"),
    ],
)
def test_a_file_without_a_kernel_or_a_call_has_a_reason(tmp_path, kernel, test, reason):
    (tmp_path / "k.py").write_text(kernel)
    (tmp_path / "test_k.py").write_text(test)
    (found,) = OwnReader("own-k", "k.py", "pytest test_k.py").entries(tmp_path)
    assert isinstance(found, Unsupported)
    assert found.reason.startswith(reason)


def test_a_file_that_builds_an_extension_is_a_task_in_hip():
    (found,) = OwnReader("own-x", "scaled_add.py", "pytest test_scaled_add.py").entries(EXTENSION)
    assert isinstance(found, FoundTask)
    assert (found.mode, found.details["functions"]) == (Mode.HIP2HIP, ["scaled_add"])


def test_the_start_kernel_of_an_extension_is_a_module_in_python():
    source = (EXTENSION / "scaled_add.py").read_text()
    call = {"function": "extension.scaled_add", "args": [], "kwargs": {}, "tensors": []}
    template = CallTemplate.from_json({"call": call, "shapes": [], "axes": [], "grid": None})
    origin = Origin("own-x", "x", "own", "one line", "", source, ("extension",))
    task = Task(RecordedProblem(origin, [template], ()), Mode.HIP2HIP)
    assert task.start_source == source
    text = prompt(task, "a device")
    assert text.count("scaled_add_kernel<<<") == 1
    assert "HIP kernels, which one call of `load_inline` builds" in text
    assert text.rstrip().endswith("in one ```python block.")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckoutError, match=r"k\.py"):
        list(OwnReader("own-k", "k.py", "pytest test_k.py").entries(tmp_path))


def test_readers_of_own_files_are_found_by_name():
    assert get_reader("own-swish-gate") == OwnReader("own-swish-gate")


def test_a_program_in_hip_is_refused_with_the_cure(tmp_path):
    program = tmp_path / "main.hip"
    program.write_text("int main() {}")
    arguments = ["new", str(program), "--record", "./main"]
    refused = CliRunner().invoke(app, arguments, env={"COLUMNS": "999"})
    assert refused.exit_code == 2
    assert "only calls from Python are recorded; write its operation as a PyTorch" in refused.output


@pytest.mark.slow
def test_the_command_admits_the_example(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_GYM_IMPORTS", str(tmp_path))
    command = [Path(sys.executable).parent / "kernel-gym", "new", "swish_gate.py", "--json"]
    command += ["--record", "pytest test_swish_gate.py"]
    ended = subprocess.run(command, cwd=KERNEL, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["task"] == "own-swish-gate/swish_gate"
    assert json.loads(ended.stdout)["status"] == "admitted"


@pytest.mark.sweep  # a minute: PyTorch's headers are compiled for both sides of the extension
def test_calls_of_an_extension_itself_are_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_GYM_IMPORTS", str(tmp_path / "imports"))
    source = (EXTENSION / "scaled_add.py").read_text()
    tests = (EXTENSION / "test_scaled_add.py").read_text()
    tests = tests.replace("import scaled_add", "import extension")
    tests = tests.replace("(scaled_add(", "(extension.scaled_add(")
    (tmp_path / "scaled_add.py").write_text(source)
    (tmp_path / "test_scaled_add.py").write_text(tests)
    tool = str(Path(sys.executable).parent / "kernel-gym")

    def run(*words):
        command = [tool, *words, "--json"]
        return json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True).stdout)

    made = run("new", "scaled_add.py", "--record", "pytest test_scaled_add.py")
    assert (made["task"], made["status"]) == ("own-scaled-add/scaled_add", "admitted")
    wrong = source.replace("+ factor *", "+ 0.999f * factor *")
    (tmp_path / "wrong.py").write_text(wrong)
    device = ("--device", "sim:gfx942", "--seed", "0")
    for file, outcome in (("scaled_add.py", "passed"), ("wrong.py", "wrong_values")):
        evaluation = run("check", made["task"], file, *device)["evaluation"]
        assert evaluation["outcome"] == outcome, evaluation["message"]


SOFTMAX_TEST = """
import pytest
import torch
from softmax import softmax

@pytest.mark.parametrize("shape", [(4, 128), (16, 1000)])
def test_softmax(shape):
    x = torch.randn(shape, device="cuda").half()
    torch.testing.assert_close(softmax(x), torch.softmax(x.float(), -1).half())
"""


@pytest.mark.sweep  # admission plays the controls of the task: 20 processor seconds
def test_a_kernel_in_flydsl_is_the_start_and_the_baseline_of_its_task(tmp_path, monkeypatch):
    pytest.importorskip("flydsl")
    monkeypatch.setenv("KERNEL_GYM_IMPORTS", str(tmp_path / "imports"))
    source = (KERNEL.with_name("flydsl") / "softmax.py").read_text()
    (tmp_path / "softmax.py").write_text(source)
    (tmp_path / "test_softmax.py").write_text(SOFTMAX_TEST)
    tool = str(Path(sys.executable).parent / "kernel-gym")

    def run(*words):
        command = [tool, *words, "--json"]
        return json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True).stdout)

    made = run("new", "softmax.py", "--record", "pytest test_softmax.py")
    assert (made["task"], made["status"]) == ("own-softmax/softmax", "admitted")
    words = ("check", made["task"], "softmax.py", "--device", "sim:gfx942", "--seed", "0")
    evaluation = run(*words)["evaluation"]
    assert evaluation["outcome"] == "passed"
    assert evaluation["speedup"] == pytest.approx(1, abs=0.02)


def test_a_recording_without_flydsl_names_the_cure(monkeypatch, tmp_path):
    (tmp_path / "kernel.py").write_text("import flydsl.compiler as flyc\n")
    assert upstream._has_flydsl(tmp_path)
    (tmp_path / "kernel.py").write_text("import triton  # not flydsl\n")
    assert not upstream._has_flydsl(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "flydsl" else name)
    with pytest.raises(BuildError, match=r"kernel-gym\[flydsl\]"):
        flydsl.check_installed()
