"""Inputs of timed calls that wait on the host for their check."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from kernel_gym.judge.timing import deferred_checks
from kernel_gym.judge.timing.deferred_checks import DeferredChecks
from kernel_gym.tasks import get_problem
from kernel_gym.tasks.workload import Kind, Split, Workload


class _Answered(Exception):
    """The reference worker was asked."""


def test_a_reference_worker_gets_the_inputs_where_they_were_drawn(monkeypatch):
    """The host keeps the inputs when there are many; the worker compares them with GPU memory."""
    monkeypatch.setattr(deferred_checks, "MAX_BYTES", -1)
    asked = []

    def answer(workload, inputs):
        asked.append((inputs["x"].device.type, inputs["n"]))
        raise _Answered

    checks = DeferredChecks(answer)
    workload = Workload({"n": 4}, Split.TRAIN, Kind.TRAIN, "normal")
    with FakeTensorMode():
        x = torch.zeros(4, device="cuda")
        checks.add(get_problem("add"), workload, {"n": 4, "x": x}, (x + 1,))
        with pytest.raises(_Answered):
            checks.check()
    assert asked == [("cuda", 4)]
