"""The presets against the figures and formulas of their sources."""

import pytest

from kernel_gym.records import Outcome, Stage
from kernel_gym.rewards import get_reward, returns
from kernel_gym.rewards.recipe import Recipe
from kernel_gym.tasks.workload import Split
from tests.records import evaluation, failure, passing, workload

WRONG = failure(Outcome.WRONG_VALUES, Stage.TRAIN)
BROKEN = failure(Outcome.COMPILE_ERROR, Stage.BUILD)
UNTIMED = failure(Outcome.INVALID_TIMING, Stage.TIME)


def value(name, found):
    return get_reward(name)(found).value


def timed(*ratios, seconds=(), **fields):
    """Returns a correct kernel with these speedups on its train workloads."""
    results = [workload(speedup=ratio) for ratio in ratios]
    results += [
        workload(speedup=base / own).model_copy(
            update={"candidate_seconds": own, "baseline_seconds": base, "roofline_seconds": light}
        )
        for own, base, light in seconds
    ]
    return evaluation(Outcome.PASSED, workloads=results, **fields)


@pytest.mark.parametrize(
    ("found", "score"),
    [
        (BROKEN, 0),
        (WRONG, 20),
        (UNTIMED, 120),
        (passing(1.0, 1.0), 220),
        (passing(0.5, 0.5), 170),
        (timed(1.0, 3.0), 320),
        (
            timed(1e-30, 3.0).model_copy(update={"workloads": (workload(), workload(speedup=3.0))}),
            120,
        ),
        (failure(Outcome.HACK, Stage.TRAIN), 0),
    ],
    ids=["broken", "wrong", "no time", "untouched", "half", "mean", "a zero", "hack"],
)
def test_agent_kernel_arena(found, score):
    assert value("agentkernelarena", found) == pytest.approx(score)


def test_kernel_bench_fast_p_is_the_mean_over_tasks():
    tasks = [BROKEN, WRONG, passing(0.9, 1.0), passing(1.1, 1.0), passing(2.0, 1.0)]
    fast_1 = sum(value("kernelbench-fast-p", task) for task in tasks) / len(tasks)
    assert fast_1 == 2 / 5


def test_kevin():
    turns = [WRONG, passing(0.8, 1.0), passing(1.5, 1.0)]
    scores = [value("kevin", turn) for turn in turns]
    assert scores == pytest.approx([0.0, 1.1, 1.8])
    discounted = returns(scores, get_reward("kevin").gamma)
    assert discounted == pytest.approx([0.4 * 1.1 + 0.16 * 1.8, 1.1 + 0.4 * 1.8, 1.8])


@pytest.mark.parametrize(
    ("found", "milestone"),
    [
        (BROKEN, -1),
        (WRONG, -1),
        (failure(Outcome.HACK, Stage.TIME), -1),
        (passing(0.5, 1.0), 1),
        (passing(1.05, 1.0), 1),
        (passing(1.06, 1.0), 2),
        (passing(1.6, 1.0), 3),
    ],
)
def test_cuda_agent(found, milestone):
    assert value("cuda-agent", found) == milestone


@pytest.mark.parametrize(
    ("found", "score"), [(WRONG, 0), (passing(1.0, 1), 3), (passing(2.0, 1), 4), (passing(9, 1), 5)]
)
def test_kernel_gym_paper(found, score):
    assert value("kernelgym", found) == pytest.approx(score)


@pytest.mark.parametrize(
    ("own", "score"), [(10e-6, 0.5), (2e-6, 1.0), (4e-6, 0.8), (18e-6, 1 / 3), (1e-6, 1.0)]
)
def test_speed_of_light(own, score):
    """Baseline 10 us, roofline 2 us."""
    assert value("sol", timed(seconds=[(own, 10e-6, 2e-6)])) == pytest.approx(score)
    assert value("sol", WRONG) == 0.0


def test_speed_of_light_of_a_baseline_without_room():
    assert value("sol", timed(seconds=[(2e-6, 2e-6, 2e-6)])) == 1.0
    assert value("sol", timed(seconds=[(3e-6, 2e-6, 2e-6)])) == 0.0


@pytest.mark.parametrize(("found", "score"), [(WRONG, 0), (UNTIMED, 1), (passing(0.1, 1), 1)])
def test_autotriton(found, score):
    assert value("autotriton", found) == score


def test_triton_bench():
    result = get_reward("tritonbench")(timed(seconds=[(1e-6, 2e-6, 1e-7), (4e-6, 4e-6, 1e-7)]))
    assert result.terms == {"call": 1, "execution": 1, "speedup": pytest.approx(6 / 5)}
    assert get_reward("tritonbench")(WRONG).terms == {"call": 1, "execution": 0, "speedup": 0}
    assert value("tritonbench", failure(Outcome.RUNTIME_ERROR, Stage.TRAIN)) == 0


def test_every_preset_names_its_source():
    from kernel_gym.rewards import reward_names

    # Another test of this process may have registered a function of its own.
    presets = [r for name in reward_names() if isinstance(r := get_reward(name), Recipe)]
    assert "kernel-opt" in [preset.name for preset in presets]
    assert all(preset.source for preset in presets)


def test_right_on_train_and_wrong_on_unseen_gets_no_speed_reward():
    results = [workload(speedup=5.0), workload(Split.UNSEEN, passed=False)]
    bound = failure(Outcome.UNSEEN_FAILED, Stage.UNSEEN, workloads=results, speedup_low=5.0)
    slow = bound.model_copy(update={"workloads": (workload(), results[1]), "speedup_low": None})
    for name in ("kernel-opt", "agentkernelarena", "kevin", "kernelgym", "sol"):
        assert value(name, bound) == value(name, slow)
