"""The workgroups that the timing model samples: each call has a draw, a repeated call has none."""

from __future__ import annotations

from contextlib import closing

import pytest

from kernel_gym.devices.base import Audit
from kernel_gym.devices.sim.device import SimDevice
from kernel_gym.tasks import Scale, get_task, make_inputs, train_workloads

TASK = get_task("triton2triton/depthwise_conv2d")
"""A weight misses the L1 in one load of 49, in which places the samples decide."""


@pytest.fixture(scope="module")
def call():
    workload = train_workloads(TASK.problem, Scale.SIM)[0]
    inputs = make_inputs(TASK.problem, workload, seed=1)
    with closing(SimDevice()) as device, closing(device.open(TASK, seed=7)) as session:
        assert session.load(TASK.kernel_source) is None
        yield lambda audit: session.call(inputs, workload.dims, audit=audit).seconds


def test_calls_are_looked_at_through_samples_of_their_own(call):
    assert len({call(Audit.OFF) for _ in range(3)}) == 3


def test_the_same_call_once_more_takes_the_same_time(call):
    first = call(Audit.OFF)
    assert call(Audit.AGAIN) == first == call(Audit.AGAIN)
    assert call(Audit.OFF) != first
