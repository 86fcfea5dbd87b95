"""A record may not contradict itself."""

import pytest
from pydantic import ValidationError

from kernel_gym.records import Evaluation, Outcome, Stage
from tests.records import failure, passing, workload

PASSED = passing(2.0, 1.5).model_dump()
FAILED = failure(Outcome.WRONG_VALUES, Stage.TRAIN).model_dump()


@pytest.mark.parametrize(
    ("record", "change", "message"),
    [
        (PASSED, {"speedup": None}, "needs speedup"),
        (PASSED, {"speedup_low": None}, "needs speedup"),
        (PASSED, {"stage": Stage.TIME}, "contradicts stage"),
        (FAILED, {"stage": Stage.DONE}, "contradicts stage"),
        (FAILED, {"speedup": 2.0}, "contradicts a speedup"),
        (FAILED, {"unseen_speedup_low": 2.0}, "contradicts a speedup"),
        (FAILED, {"outcome": Outcome.INFRA, "retention": 1.0}, "contradicts a speedup"),
        (FAILED, {"outcome": Outcome.INFRA, "workloads": [workload()]}, "results of workloads"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(record, change, message):
    with pytest.raises(ValidationError, match=message):
        Evaluation.model_validate({**record, **change})


@pytest.mark.parametrize("record", [PASSED, FAILED], ids=["passed", "failed"])
def test_a_consistent_record_is_read_back_unchanged(record):
    evaluation = Evaluation.model_validate(record)
    assert Evaluation.model_validate_json(evaluation.model_dump_json()) == evaluation


def test_an_untimed_workload_of_an_old_record_is_readable():
    record = {**PASSED, "unseen_speedup": None, "unseen_speedup_low": None, "retention": None}
    assert Evaluation.model_validate(record).unseen_speedup is None
