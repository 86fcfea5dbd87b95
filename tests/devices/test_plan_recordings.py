"""Recordings: a recorder that does not end its questions has made no plan."""

from __future__ import annotations

from kernel_gym.devices.base import Failed
from kernel_gym.devices.plan_recordings import PlanRecordings
from kernel_gym.plans.types import BufferRole, BufferView, LaunchPlan, PlanBuffer
from kernel_gym.plans.write import write_plan
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


def test_a_recorder_that_only_asks_has_made_no_plan():
    task = get_task("triton2triton/softmax")
    workload = train_workloads(task.problem, Scale.SIM)[0]
    question = {"ask": "seconds", "first": 0, "plan": write_plan(PLAN)[0], "refused": []}
    recordings = PlanRecordings(task, lambda request: ChannelMessage(question, ()), returns=True)
    recorded = recordings.record(
        make_inputs(task.problem, workload, 0), workload.dims, lambda plan, first: 1e-6
    )
    assert isinstance(recorded, Failed)
    assert "more than 256 questions" in recorded.message
