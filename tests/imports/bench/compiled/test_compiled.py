"""`torch.compile` beside eager PyTorch, with Inductor's compiler for the CPU."""

import shutil
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from kernel_gym.imports.authoring.request import TracingRequest
from kernel_gym.imports.authoring.write import trace_problem
from kernel_gym.imports.bench.compiled import steps
from kernel_gym.imports.bench.compiled.alternation import HostClock, alternate
from kernel_gym.imports.bench.compiled.process import CompiledTimer, CompilingProcess, Missing
from kernel_gym.imports.manifest import CompiledBaseline
from kernel_gym.imports.traced.loading import load_text
from kernel_gym.records import Clock
from kernel_gym.tasks import Scale

compiles = pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs g++")
MODULE = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * 2 + 1).sum(1)


rows = 64
width = 128


def get_inputs():
    return [torch.rand(rows, width)]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def text():
    request = TracingRequest(
        {"problem.py": MODULE},
        "problem.py:Model",
        "problem.py:get_inputs",
        "problem.py:get_init_inputs",
    )
    return trace_problem(request, "model_new", "a test").problem


@pytest.fixture
def device():
    """The part of a device that measurements use: the host itself."""
    spec = SimpleNamespace(flush_bytes=1 << 20)
    return SimpleNamespace(
        description=SimpleNamespace(
            hardware="a CPU",
            scale=Scale.SIM,
            torch_device=torch.device("cpu"),
            spec=spec,
            clock=Clock.MEASURED,
        ),
        held=lambda exclusivity: nullcontext(),
    )


@pytest.fixture
def timer():
    timer = CompiledTimer()
    yield timer
    timer.close()


@compiles
def test_a_reference_is_timed_beside_its_compiled_form(text, device, timer):
    problem = load_text("model_new", text)
    measured = timer.measure(problem, device)
    assert measured.reason == ""
    assert measured.hardware == "a CPU"
    number = len(problem.train[Scale.SIM])
    assert len(measured.eager_seconds) == len(measured.compiled_seconds) == number
    assert all(seconds > 0 for seconds in (*measured.eager_seconds, *measured.compiled_seconds))
    assert measured.speedup == pytest.approx(
        torch.tensor(measured.eager_seconds)
        .log()
        .sub(torch.tensor(measured.compiled_seconds).log())
        .mean()
        .exp()
        .item()
    )
    assert timer.refusals(problem, device) == []


def test_a_reference_that_cannot_be_compiled_has_a_reason(text, device, timer):
    broken = text.replace(
        "aten = torch.ops.aten\n        ",
        "torch._dynamo.graph_break()\n        aten = torch.ops.aten\n        ",
    )
    assert broken != text
    measured = timer.measure(load_text("model_new", broken), device)
    assert measured.speedup is None
    assert measured.reason.startswith("torch.compile: ")


@compiles
def test_a_compiled_answer_that_is_wrong_is_no_baseline(text, device, timer):
    wrong = text.replace(
        "aten = torch.ops.aten\n        ",
        "aten = torch.ops.aten\n        x = x + float(torch.compiler.is_compiling())\n        ",
    )
    measured = timer.measure(load_text("model_new", wrong), device)
    assert measured.speedup is None
    assert measured.reason.startswith("its compiled answer is refused on ")


def test_a_process_that_ends_is_started_again(text):
    process = CompilingProcess()
    with pytest.raises(Missing, match="open: its process has ended"):
        process.ask("open", name="x", text="def", scale="sim", device="cpu", flush=0)
    assert process.ask("open", name="x", text=text, scale="sim", device="cpu", flush=0)
    process.close()


def test_a_step_that_takes_too_long_ends_the_process(text):
    process = CompilingProcess()
    with pytest.raises(Missing, match="not done within 0 s"):
        process.ask("open", 0, name="x", text=text, scale="sim", device="cpu", flush=0)
    opened = process.ask("open", name="x", text=text, scale="sim", device="cpu", flush=0)
    assert len(opened["workloads"]) == 3
    process.close()


def test_blocks_alternate_and_no_block_uses_a_set_twice():
    calls = []
    sides = (lambda x: calls.append(("a", x)), lambda x: calls.append(("b", x)))
    alternate(sides, [[1], [2], [3]], HostClock(1 << 12))
    blocks = [calls[i : i + 3] for i in range(0, len(calls), 3)]
    assert all([x for _, x in block] == [1, 2, 3] for block in blocks)
    names = [block[0][0] for block in blocks]
    assert names[:6] == ["a", "b", "a", "b", "b", "a"]  # a pilot of each, then rounds
    assert names.count("a") == names.count("b")


def test_memory_that_is_missing_is_told_apart(text, monkeypatch):
    def no_memory(*_):
        raise torch.OutOfMemoryError("no memory")

    measurement = steps.Measurement("x", text, "sim", "cpu", 0)
    monkeypatch.setattr(steps, "expect", no_memory)
    with pytest.raises(steps.StepOutOfMemory, match="the check needs more memory than is free"):
        measurement.check(0)


def test_without_times_there_is_no_speedup():
    assert CompiledBaseline(reason="no").speedup is None
    assert CompiledBaseline(eager_seconds=(8.0, 2.0), compiled_seconds=(1.0, 1.0)).speedup == 4.0
