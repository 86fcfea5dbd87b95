"""Which task an episode is about."""

import numpy as np
import pytest

from kernel_gym.envs.choice import Tasks
from kernel_gym.tasks import load_suite

SOFTMAX, GELU = "triton2triton/softmax", "triton2triton/gelu"


def test_a_suite_is_drawn_evenly():
    shares = Tasks("quickstart").probabilities
    ids = [task.id for task in load_suite("quickstart").tasks]
    assert list(shares) == ids
    assert set(shares.values()) == {1 / len(ids)}


def test_a_list_is_drawn_evenly_over_tasks():
    shares = Tasks([SOFTMAX, GELU, GELU]).probabilities
    assert shares == pytest.approx({SOFTMAX: 1 / 3, GELU: 2 / 3})
    assert len(set(Tasks(["quickstart", "instruction2triton/gelu"]).probabilities.values())) == 1


def test_weights_are_of_tasks_or_whole_suites():
    shares = Tasks({"quickstart": 1.0, "instruction2triton/gelu": 1.0}).probabilities
    assert shares["instruction2triton/gelu"] == 0.5
    assert sum(shares.values()) == pytest.approx(1.0)
    assert Tasks({SOFTMAX: 2, GELU: 0}).probabilities == {SOFTMAX: 1.0}


def test_draws_follow_the_weights_and_the_seed():
    tasks = Tasks({SOFTMAX: 0.9, GELU: 0.1})
    drawn = [tasks.draw(np.random.default_rng(seed)).id for seed in range(200)]
    assert drawn == [tasks.draw(np.random.default_rng(seed)).id for seed in range(200)]
    assert 150 < drawn.count(SOFTMAX) < 200


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ([], "nothing to draw"),
        ({SOFTMAX: 0}, "nothing to draw"),
        ({SOFTMAX: -1.0}, "found -1.0, expected 0 or more"),
        ({SOFTMAX: float("nan")}, "found nan"),
        (["triton2triton/softmx"], SOFTMAX),
        ("quikstart", "quickstart"),
    ],
)
def test_bad_choices_say_what_was_found(choice, message):
    with pytest.raises((ValueError, KeyError), match=message):
        Tasks(choice)
