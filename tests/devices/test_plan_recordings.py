"""Recordings: what a recorder sends that is no plan is its candidate's failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernel_gym.devices.base import Failed
from kernel_gym.devices.plan_recordings import PlanRecordings
from kernel_gym.plans.types import (
    BufferRole,
    BufferView,
    CodeForm,
    LaunchPlan,
    LaunchStep,
    PlanBuffer,
    PlanCode,
    PlanKernel,
)
from kernel_gym.plans.write import write_plan
from kernel_gym.protocol.worker import RecordCall
from kernel_gym.sandbox.channel import ChannelMessage
from kernel_gym.tasks import Scale, get_task, make_inputs, train_workloads

PLAN = LaunchPlan(
    "gfx942",
    (),
    (),
    (PlanBuffer(BufferRole.INPUT, 16),),
    (),
    (BufferView(0, 0, (2,), (1,), "int8"),),
)


TASK = get_task("triton2triton/softmax")


def recordings_of(ask):
    return PlanRecordings(TASK, ask, returns=True)


def recorded_by(recordings):
    workload = train_workloads(TASK.problem, Scale.SIM)[0]
    inputs = make_inputs(TASK.problem, workload, 0)
    return recordings.record(inputs, workload.dims, lambda plan, first: 1e-6)


def recorded(header, *buffers):
    """Records a call with a recorder that always answers this."""
    return recorded_by(recordings_of(lambda _: ChannelMessage(header, buffers)))


def test_a_recorder_that_only_asks_has_made_no_plan():
    question = {"ask": "seconds", "first": 0, "plan": write_plan(PLAN)[0], "refused": []}
    requests = []

    def ask(request):
        requests.append(request)
        return ChannelMessage(question, ())

    recordings = recordings_of(ask)
    for _ in range(2):  # it still waits for an answer, so a second call is not sent to it
        failed = recorded_by(recordings)
        assert isinstance(failed, Failed)
        assert "more than 256 questions: it tunes itself with too many" in failed.message
    assert [isinstance(request, RecordCall) for request in requests] == [True] + [False] * 256


@pytest.mark.parametrize("copies", [False, True])
def test_a_launch_that_counts_as_a_copy_is_refused(copies):
    code = PlanCode(CodeForm.ASSEMBLER, b"text")
    launch = LaunchStep(0, (1, 1, 1), (64, 1, 1), 0, (), copies)
    plan = replace(PLAN, codes=(code,), kernels=(PlanKernel(0, "k"),), steps=(launch,))
    header, *buffers = write_plan(plan)
    call = recorded({"plan": header, "refused": []}, *buffers)
    assert isinstance(call, Failed) is copies
    assert not copies or "it has a launch of the judge" in call.message
