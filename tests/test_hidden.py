"""Records without hidden data, and what a person may see."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.feedback import hidden_failure
from kernel_gym.hidden import revealed, without_hidden, without_hidden_times
from kernel_gym.records import Element, Evaluation, Outcome, Stage
from kernel_gym.rewards import get_reward
from kernel_gym.tasks.workload import Kind, Layout, Split
from tests.records import failure, passing, workload

SECRET = {"rows": 31337, "cols": 27644}
ELEMENT = Element(output="out", index=(27643,), expected=0.25, found=31337.5, tolerance=1e-3)


def hidden(split, **fields):
    """Returns a workload with hidden data in all fields."""
    given = {
        "dims": SECRET,
        "kind": Kind.EDGE,
        "distribution": "tiny",
        "layout": Layout.STRIDED,
        "message": "out of bounds at row 31337",
        "element": ELEMENT,
        "worst_error": 27644.0,
        "passed": False,
        **fields,
    }
    return workload(split).model_copy(update=given)


def evaluation(split, stage):
    workloads = [workload(), hidden(split)]
    return failure(
        Outcome.WRONG_VALUES, stage, detail="rows 31337", workloads=workloads
    ).model_copy(update={"message": "wrong for cols 27644"})


HIDDEN = [(Split.ADVERSARIAL, Stage.ADVERSARIAL), (Split.UNSEEN, Stage.UNSEEN)]


@pytest.mark.parametrize(("split", "stage"), HIDDEN)
def test_nothing_identifies_a_hidden_workload(split, stage):
    shown = without_hidden(evaluation(split, stage))
    text = shown.model_dump_json()
    for secret in ("31337", "27644", "27643", "tiny", "strided", "out of bounds at"):
        assert secret not in text
    assert "a kernel accesses memory out of bounds" in shown.message
    assert Evaluation.model_validate_json(text) == shown


@pytest.mark.parametrize("message", ["no answer in time", "does not compile", "crash"])
def test_feedback_on_a_record_without_hidden_data_names_the_same_cause(message):
    workloads = [workload(), hidden(Split.UNSEEN, message="", element=None, worst_error=None)]
    failed = failure(Outcome.UNSEEN_FAILED, Stage.UNSEEN, workloads=workloads)
    failed = failed.model_copy(update={"message": f"fails on unseen workloads: {message}"})
    shown = without_hidden(failed)
    assert "the result is wrong" not in shown.message
    assert hidden_failure(shown) == hidden_failure(failed) == shown.message


def test_times_that_name_a_workload_are_withheld():
    failed = failure(Outcome.HACK, Stage.TIME).model_copy(update={"message": "1 us at rows 31337"})
    assert "31337" not in without_hidden(failed).model_dump_json()


@given(
    st.sampled_from(Split), st.dictionaries(st.sampled_from("abc"), st.integers(10**6), max_size=3)
)
def test_train_workloads_and_what_decides_rewards_are_left(split, dims):
    whole = passing(2.0, 1.5)
    more = workload(split).model_copy(update={"dims": dims})
    whole = whole.model_copy(update={"workloads": (*whole.workloads, more)})
    shown = without_hidden(whole)
    assert shown.by_split(Split.TRAIN) == whole.by_split(Split.TRAIN)
    assert len(shown.workloads) == len(whole.workloads)
    assert get_reward()(shown) == get_reward()(whole)
    text = json.dumps([w.dims for w in shown.workloads if w.split is not Split.TRAIN])
    assert not any(str(size) in text for size in dims.values())


def test_speedups_of_hidden_workloads_are_left_for_rewards_and_not_for_clients():
    rows = (workload(speedup=2.0), workload(Split.UNSEEN, speedup=1.2345))
    whole = passing(2.0, 1.2345).model_copy(update={"workloads": rows})
    assert get_reward()(without_hidden(whole)) == get_reward()(whole)
    shown = without_hidden_times(whole)
    assert shown.by_split(Split.TRAIN) == whole.by_split(Split.TRAIN)
    (hidden_row,) = shown.by_split(Split.UNSEEN)
    assert hidden_row.speedup is hidden_row.speedup_low is None
    assert (shown.speedup, shown.unseen_speedup) == (whole.speedup, whole.unseen_speedup)


@pytest.mark.parametrize(("split", "stage"), HIDDEN)
def test_a_person_may_ask_for_the_workload_and_the_element(split, stage):
    text = revealed(evaluation(split, stage))
    for part in ("rows=31337 cols=27644", "tiny", "out of bounds", "out[27643]", "31337.5"):
        assert part in text
    assert revealed(passing(2.0, 1.5)) == ""
