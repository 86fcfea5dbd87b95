"""Records are judged again from stored plans: equal in every field, and no source runs."""

from __future__ import annotations

import pytest

from kernel_gym.devices.plan_store import NoPlanError
from kernel_gym.devices.sim.worker import SimWorkerHandle
from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task

TASK = get_task("triton2triton/softmax")
BROKEN = "def softmax(x):\n    raise ValueError\n"


WRONG = TASK.start_source.replace("tl.exp(", "2 * tl.exp(2 * ")


@pytest.mark.parametrize(
    ("source", "outcome"),
    [(TASK.start_source, Outcome.PASSED), (WRONG, Outcome.WRONG_VALUES)],
    ids=["right", "wrong"],
)
def test_a_record_is_judged_again_from_its_plans(source, outcome, tmp_path, monkeypatch):
    with Evaluator("sim:gfx942", plans=tmp_path) as evaluator:
        first = evaluator.evaluate(TASK, source, seed=3)
        assert first.outcome is outcome
        asked = []
        monkeypatch.setattr(SimWorkerHandle, "exchange", lambda *args: asked.append(args))
        again = evaluator.judge_again(TASK, source, seed=3)
    assert asked == []
    assert again.canonical() == first.canonical()
    assert {workload.plan_from for workload in again.workloads} == {"shapes"}


def test_what_has_no_plan_is_not_judged_again(tmp_path):
    with Evaluator("sim:gfx942", plans=tmp_path) as evaluator:
        assert evaluator.evaluate(TASK, BROKEN, seed=3).outcome is Outcome.RUNTIME_ERROR
        with pytest.raises(NoPlanError):
            evaluator.judge_again(TASK, BROKEN, seed=3)
        with pytest.raises(NoPlanError):
            evaluator.judge_again(TASK, TASK.start_source, seed=4)
