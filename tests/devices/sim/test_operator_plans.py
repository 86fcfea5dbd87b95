"""Plans of imported tasks: operators of PyTorch as steps, and host code that reads values."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
import torch

from kernel_gym.devices.base import Call, Failed, FailureKind
from kernel_gym.devices.plan_recordings import PlanRecordings
from kernel_gym.devices.sim.planned_session import PlannedSession
from kernel_gym.devices.sim.session import SimOptions
from kernel_gym.plans.types import LaunchStep, ReadStep, TorchOperatorStep
from kernel_gym.tasks import get_task

SOFTMAX = get_task("triton2triton/softmax")
DIMS = {"rows": 4, "cols": 8}
X = torch.arange(32.0).reshape(4, 8).to(torch.float16)
HEAD = """
import torch, triton
import triton.language as tl
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0) * 2, mask=at < n)
def work(x, y):
    double[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
"""


@pytest.fixture
def opened(monkeypatch):
    """Opens a session as for an imported task; `resident` as for the suite's own code."""
    monkeypatch.setattr(type(SOFTMAX.problem), "recorded", True)

    def open_(source, resident=True):
        session = PlannedSession(SOFTMAX, SimOptions(seed=3, resident=resident))
        assert session.load(HEAD + source) is None
        return closing(session)

    return open_


def called(opened, source, x=X, resident=True):
    with opened(source, resident) as session:
        plan = session.record({"x": x}, DIMS)
        return plan, session.call({"x": x}, DIMS)


def test_operators_between_kernels_are_steps_of_the_plan(opened):
    source = """
def softmax(x):
    y = torch.empty_like(x)
    work(x + 1, y)
    return torch.cat([y[:, :4].exp().sqrt(), y[:, 4:] - y.amax(-1, keepdim=True)], 1)
"""
    plan, call = called(opened, source)
    assert isinstance(call, Call), call
    doubled = 2 * (X + 1)
    parts = [doubled[:, :4].exp().sqrt(), doubled[:, 4:] - doubled.amax(-1, keepdim=True)]
    assert torch.equal(call.outputs[0].tensor, torch.cat(parts, 1))
    names = [step.name for step in plan.steps if isinstance(step, TorchOperatorStep)]
    assert names == [f"aten::{name}" for name in "add exp sqrt amax sub cat".split()]
    assert sum(isinstance(step, LaunchStep) for step in plan.steps) == 1
    assert (call.plan_from, call.launches) == ("shapes", 1)
    assert "aten::exp" in call.operators
    assert call.operator_seconds > 0


def test_another_form_of_a_buffer_as_torch_compile_makes_it_is_no_step(opened):
    source = """
reinterpreted = torch.ops.inductor._reinterpret_tensor
def softmax(x):
    buffer = torch.empty((8, 4), dtype=x.dtype, device=x.device)
    work(x, reinterpreted(buffer, (4, 8), (8, 1), 0))
    return reinterpreted(buffer, (4, 8), (8, 1), 0)
"""
    plan, call = called(opened, source)
    assert isinstance(call, Call), call
    assert torch.equal(call.outputs[0].tensor, 2 * X)
    assert [type(step) for step in plan.steps] == [LaunchStep]


def test_gradients_and_operators_in_place_are_recorded(opened):
    source = """
def softmax(x):
    leaf = x.detach().float().requires_grad_()
    with torch.enable_grad():
        (leaf * leaf).sum().backward()
    out = leaf.grad.to(torch.float16)
    out.add_(1)
    return out
"""
    _, call = called(opened, source)
    assert isinstance(call, Call), call
    assert torch.equal(call.outputs[0].tensor, 2 * X + 1)


READS = """
def softmax(x):
    y = torch.empty_like(x)
    work(x, y)
    for _ in range(int(y[0, 1].item())):
        work(y, y)
    return y
"""


def test_host_code_may_read_values_that_a_kernel_has_written(opened):
    plan, call = called(opened, READS, resident=False)
    assert isinstance(call, Call), call
    assert (call.plan_from, call.launches) == ("values", 3)
    assert torch.equal(call.outputs[0].tensor, 8 * X)
    assert [type(step) for step in plan.steps] == [LaunchStep, ReadStep, LaunchStep, LaunchStep]
    assert plan.steps[1].data == torch.tensor([2.0], dtype=torch.float16).numpy().tobytes()


@pytest.mark.parametrize(
    "asked", ["torch.equal(x, x + 0)", "torch.allclose(x, x + 0, atol=1e-3)", "(x + 0 == x).all()"]
)
def test_host_code_may_ask_whether_tensors_are_equal(opened, asked):
    source = f"""
def softmax(x):
    y = torch.empty_like(x)
    work(x, y)
    return y if {asked} and not {asked.replace("+ 0", "+ 1")} else x
"""
    plan, call = called(opened, source)
    assert isinstance(call, Call), call
    assert torch.equal(call.outputs[0].tensor, 2 * X)
    assert sum(isinstance(step, ReadStep) for step in plan.steps) == 2


def test_a_plan_that_depends_on_values_is_of_one_call(opened):
    with opened(READS, resident=False) as session:
        calls = [session.call({"x": x}, DIMS) for x in (X, 2 * X, X)]
    assert [call.launches for call in calls] == [3, 5, 3]
    assert len({call.plan for call in calls}) == 2


@pytest.mark.parametrize("others", [2 * X, X])
def test_what_no_value_decides_must_be_equal_in_all_calls(opened, others):
    source = """
calls = [0]
def softmax(x):
    calls[0] += 1
    y = torch.empty_like(x)
    for _ in range(1 + calls[0] // 3):
        work(x, y)
    y[0, 1].item()
    return y
"""
    with opened(source, resident=False) as session:
        assert isinstance(session.call({"x": X}, DIMS), Call)
        failed = session.call({"x": others}, DIMS)
    assert isinstance(failed, Failed)
    assert "two recordings of one call differ" in failed.message


def test_sizes_that_depend_on_values_are_told(opened):
    source = """
def softmax(x):
    rows, cols = torch.nonzero(x > 20, as_tuple=True)
    out = torch.zeros_like(x)
    out[rows, cols] = x[x > 20]
    return out
"""
    plan, call = called(opened, source)
    assert isinstance(call, Call), call
    assert torch.equal(call.outputs[0].tensor, torch.where(X > 20, X, 0))
    told = [step for step in plan.steps if isinstance(step, TorchOperatorStep) and step.told]
    assert told[0].results[0].shape == (11, 2)
    assert call.plan_from == "values"


def test_a_candidate_has_no_other_operators_and_reads_little(opened):
    computes = "def softmax(x):\n    return x.exp()\n"
    reads = "def softmax(x):\n    x.repeat(1, 99).cpu()\n    return x\n"
    for source, message in ((computes, "aten::exp is refused"), (reads, "4096 bytes")):
        with opened(source, resident=False) as session:
            large = torch.ones(64, 64, dtype=torch.float16)
            failed = session.call({"x": large}, {"rows": 64, "cols": 64})
        assert isinstance(failed, Failed), failed
        assert failed.kind is FailureKind.RUNTIME
        assert message in failed.message or "repeat is refused" in failed.message


def test_random_operators_draw_alike_in_questions_and_in_the_call(opened):
    source = """
def softmax(x):
    y = torch.rand(x.shape, device="cuda")
    y[0, 0].item()
    y[1, 1].item()
    return y.to(x.dtype)
"""
    with opened(source) as session:
        first, second = (session.call({"x": X}, DIMS) for _ in range(2))
    assert isinstance(first, Call), first
    assert isinstance(second, Call), second
    assert not torch.equal(first.outputs[0].tensor, second.outputs[0].tensor)


def test_a_plan_with_values_that_memory_does_not_hold_is_refused(opened, monkeypatch):
    with opened(READS, resident=False) as session:
        record = PlanRecordings.record

        def changed(self, *args):
            call = record(self, *args)
            steps = [
                replace(step, data=b"\0<") if isinstance(step, ReadStep) else step
                for step in call.plan.steps
            ]
            return replace(call, plan=replace(call.plan, steps=tuple(steps)))

        monkeypatch.setattr(PlanRecordings, "record", changed)
        failed = session.call({"x": X}, DIMS)
    assert isinstance(failed, Failed)
    assert "has read other values" in failed.message


def test_without_kernels_a_plan_that_read_values_is_still_executed(opened):
    with opened(READS, resident=False) as session:
        replay = session.call({"x": X}, DIMS, noop=True)
        after = session.call({"x": X}, DIMS)
    assert isinstance(replay, Call), replay
    assert replay.outputs[0].tensor.isnan().all()
    assert isinstance(after, Call), after


def test_in_tasks_of_the_project_no_question_about_values_is_answered():
    source = """
from kernel_gym.worker.recording.operators import OperatorRecording
import gc
def softmax(x):
    runtime = torch.cuda._runtime if hasattr(torch.cuda, "_runtime") else None
    runtime = runtime or triton.runtime.driver.active._runtime
    with OperatorRecording(runtime):
        return x * x[0, 0].item()
"""
    session = PlannedSession(SOFTMAX, SimOptions(seed=3))
    with closing(session):
        assert session.load(HEAD + source) is None
        failed = session.call({"x": X}, DIMS)
    assert isinstance(failed, Failed)
    assert "operators of PyTorch" in failed.message or "reads no values" in failed.message
