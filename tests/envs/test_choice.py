"""Which task an episode is about."""

import numpy as np
import pytest

from kernel_gym.envs.choice import TaskSampler
from kernel_gym.tasks import load_suite
from kernel_gym.tasks.small_floats import UnfitDevice

SOFTMAX, GELU = "triton2triton/softmax", "triton2triton/gelu"


def test_a_suite_is_drawn_evenly():
    shares = TaskSampler("quickstart").probabilities
    ids = [task.id for task in load_suite("quickstart").tasks]
    assert list(shares) == ids
    assert set(shares.values()) == {1 / len(ids)}


def test_a_generated_problem_alone_is_a_task():
    task = "triton2triton/generated:seed=123,depth=4"
    assert TaskSampler("generated:seed=123,depth=4").probabilities == {task: 1.0}


def test_an_architecture_leaves_out_what_it_has_no_instructions_for(tmp_path):
    fnuz, ocp = "triton2triton/quantize_fp8_group", "triton2triton/quantize_fp8_group_ocp"
    path = tmp_path / "mine.toml"
    path.write_text(f'name = "m"\nsummary = "s"\ntasks = ["{fnuz}", "{ocp}", "{GELU}"]\n')
    assert set(TaskSampler(str(path), "gfx942").probabilities) == {fnuz, GELU}
    assert set(TaskSampler(str(path), "sm_90a").probabilities) == {ocp, GELU}
    assert set(TaskSampler(str(path), "gfx90a").probabilities) == {GELU}
    with pytest.raises(UnfitDevice, match="holds float8_e4m3fn, for which gfx942 has no"):
        TaskSampler({ocp: 1.0, GELU: 1.0}, "gfx942")


def test_a_list_is_drawn_evenly_over_tasks():
    shares = TaskSampler([SOFTMAX, GELU, GELU]).probabilities
    assert shares == pytest.approx({SOFTMAX: 1 / 3, GELU: 2 / 3})
    assert (
        len(set(TaskSampler(["quickstart", "instruction2triton/gelu"]).probabilities.values())) == 1
    )


def test_weights_are_of_tasks_or_whole_suites():
    shares = TaskSampler({"quickstart": 1.0, "instruction2triton/gelu": 1.0}).probabilities
    assert shares["instruction2triton/gelu"] == 0.5
    assert sum(shares.values()) == pytest.approx(1.0)
    assert TaskSampler({SOFTMAX: 2, GELU: 0}).probabilities == {SOFTMAX: 1.0}


def test_draws_follow_the_weights_and_the_seed():
    tasks = TaskSampler({SOFTMAX: 0.9, GELU: 0.1})
    drawn = [tasks.draw(np.random.default_rng(seed)).task.id for seed in range(200)]
    assert drawn == [tasks.draw(np.random.default_rng(seed)).task.id for seed in range(200)]
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
        TaskSampler(choice)
