"""Properties of every reward on any evaluation, and further properties of `kernel-opt`."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.records import COMPILER_RACE, Outcome, Stage
from kernel_gym.rewards import UnknownReward, get_reward, register_reward, reward_names
from kernel_gym.tasks.workload import Kind, Split
from tests.records import evaluation, failure, passing, workload

REWARD = get_reward("kernel-opt")
HONEST_FAILURES = [o for o in Outcome if o not in (Outcome.PASSED, Outcome.HACK, Outcome.INFRA)]
speedups = st.floats(min_value=1e-6, max_value=1e6)
any_float = st.none() | st.floats()
names = st.sampled_from(reward_names())
stages = st.sampled_from(list(Stage))


@given(names, st.sampled_from([o for o in Outcome if o is not Outcome.INFRA]), any_float, any_float)
def test_finite_whatever_the_record(name, outcome, train, unseen):
    result = get_reward(name)(
        evaluation(
            outcome,
            stage=Stage.TIME,
            workloads=[workload(speedup=1.0).model_copy(update={"speedup": train})],
            speedup=train,
            speedup_low=train,
            unseen_speedup_low=unseen,
        )
    )
    assert math.isfinite(result.value)
    assert all(math.isfinite(term) for term in result.terms.values())


@pytest.mark.parametrize("name", reward_names())
def test_invalid_timing_is_no_fault_of_a_right_kernel(name):
    def value(outcome, stage):
        return get_reward(name)(evaluation(outcome, stage, [workload(speedup=1.0)])).value

    late = value(Outcome.INVALID_TIMING, Stage.TIME)
    assert late >= 0
    assert late >= max(value(outcome, Stage.TRAIN) for outcome in HONEST_FAILURES)


@pytest.mark.parametrize("name", reward_names())
def test_a_race_of_the_compiler_is_masked(name):
    race = evaluation(Outcome.INFRA, Stage.TIME, labels=(COMPILER_RACE,))
    assert get_reward(name)(race).masked


@given(st.sampled_from([o for o in Outcome if o is not Outcome.INFRA]), any_float, any_float)
def test_the_default_lies_between_minus_one_and_one(outcome, train, unseen):
    scored = REWARD(evaluation(outcome, speedup_low=train, unseen_speedup_low=unseen))
    assert -1.0 <= scored.value <= 1.0


@given(names, speedups, speedups, speedups)
def test_monotone_in_train_speed(name, first, second, unseen):
    slow, fast = sorted((first, second))
    reward = get_reward(name)
    low, high = reward(passing(slow, unseen)).value, reward(passing(fast, unseen)).value
    assert low <= high + 1e-9 * abs(high)


@given(names, speedups, speedups, speedups)
def test_monotone_in_unseen_speed(name, train, first, second):
    slow, fast = sorted((first, second))
    reward = get_reward(name)
    assert reward(passing(train, slow)).value <= reward(passing(train, fast)).value + 1e-12


@given(names, st.sampled_from(HONEST_FAILURES), stages, any_float, speedups, speedups)
def test_correctness_dominates_speed(name, outcome, stage, claimed, train, unseen):
    reward = get_reward(name)
    wrong = evaluation(outcome, stage=stage, speedup_low=claimed, unseen_speedup_low=claimed)
    right = passing(train, unseen)
    assert reward(wrong).value <= reward(right).value
    assert REWARD(wrong).value < REWARD(right).value


@given(names, st.sampled_from([*HONEST_FAILURES, Outcome.PASSED]), stages, any_float)
def test_nothing_is_below_a_hack(name, outcome, stage, claimed):
    reward = get_reward(name)
    honest = evaluation(outcome, stage=stage, speedup_low=claimed, unseen_speedup_low=claimed)
    hack = evaluation(Outcome.HACK, stage=stage, speedup_low=10.0, unseen_speedup_low=10.0)
    assert reward(hack).value <= reward(honest).value
    assert REWARD(hack).value < REWARD(honest).value


@given(names, st.lists(st.tuples(st.booleans(), speedups), min_size=1, max_size=8), st.randoms())
def test_the_order_of_workloads_does_not_matter(name, drawn, random):
    results = [workload(split=Split.UNSEEN, passed=passed) for passed, _ in drawn]
    results += [workload(split=Split.TRAIN, speedup=speedup) for _, speedup in drawn]
    shuffled = list(results)
    random.shuffle(shuffled)
    one = evaluation(Outcome.PASSED, workloads=results, speedup_low=2.0, unseen_speedup_low=1.5)
    other = one.model_copy(update={"workloads": tuple(shuffled)})
    assert get_reward(name)(one) == get_reward(name)(other)


@pytest.mark.parametrize("name", reward_names())
def test_infra_is_masked_not_zero(name):
    result = get_reward(name)(failure(Outcome.INFRA, Stage.BUILD))
    assert result.value is None
    assert result.masked


def test_the_ladder_rises():
    ladder = [
        failure(Outcome.HACK, Stage.TRAIN),
        failure(Outcome.SCREENED, Stage.SCREEN),
        failure(Outcome.COMPILE_ERROR, Stage.BUILD),
        failure(Outcome.WRONG_VALUES, Stage.TRAIN),
        failure(Outcome.UNSEEN_FAILED, Stage.UNSEEN),
        failure(Outcome.INVALID_TIMING, Stage.TIME),
        passing(0.01, 0.01),
        passing(1.0, 1.0),
        passing(2.0, 1.2),
        passing(2.0, 2.0),
        passing(10.0, 10.0),
    ]
    values = [REWARD(step).value for step in ladder]
    assert values[0] == -1.0
    assert values[-1] == pytest.approx(1.0)
    assert values == sorted(set(values))


def test_a_kernel_for_the_shapes_shown_earns_the_same_wherever_it_breaks():
    unseen = REWARD(failure(Outcome.UNSEEN_FAILED, Stage.UNSEEN)).value
    adversarial = REWARD(failure(Outcome.WRONG_VALUES, Stage.ADVERSARIAL)).value
    assert unseen == adversarial > REWARD(failure(Outcome.WRONG_VALUES, Stage.TRAIN)).value


def test_the_kinds_of_unseen_workload_that_are_right_count_a_little():
    def half_right(right):
        results = [workload(split=Split.UNSEEN, passed=i < right) for i in range(6)]
        kinds = [Kind.EDGE, Kind.SCALE_UP, Kind.SCALE_DOWN, Kind.ALIGNMENT, Kind.ASPECT]
        kinds.append(Kind.PRODUCTION)
        results = [r.model_copy(update={"kind": k}) for r, k in zip(results, kinds, strict=True)]
        return failure(Outcome.UNSEEN_FAILED, Stage.UNSEEN, workloads=results)

    values = [REWARD(half_right(right)).value for right in range(6)]
    assert values == sorted(set(values))
    assert values[-1] < REWARD(failure(Outcome.INVALID_TIMING, Stage.TIME)).value


def test_the_dead_band_pays_nothing():
    at_par = REWARD(passing(1.0, 1.0)).value
    assert at_par == pytest.approx(0.15)
    assert REWARD(passing(1.019, 1.019)).value == at_par
    assert REWARD(passing(0.985, 0.985)).value == at_par


@given(st.floats(2.0, 1e3), st.floats(1.0, 1.5), st.floats(1e-3, 1.0))
def test_speed_on_the_shapes_shown_alone_earns_less_than_two_fifths(train, loss, unseen):
    """Both are fast on train. One is fast on unseen workloads too, the other is not."""
    anywhere = REWARD(passing(train, max(train / loss, 2.0))).value
    shape_bound = REWARD(passing(train, unseen)).value
    assert shape_bound < 0.4 * anywhere


@given(st.floats(0.1, 10.0), st.floats(0.99, 1.01))
def test_noise_of_one_percent_moves_the_reward_by_less_than_a_hundredth(speedup, noise):
    one, other = passing(speedup, speedup), passing(speedup * noise, speedup * noise)
    assert REWARD(one).value == pytest.approx(REWARD(other).value, abs=0.01)


def test_unknown_reward_lists_near_matches():
    with pytest.raises(UnknownReward, match=r"unknown reward 'kernel-op'; did you mean kernel-opt"):
        get_reward("kernel-op")


def test_a_name_is_registered_once():
    assert "kernel-opt" in reward_names()
    with pytest.raises(ValueError, match="registered already"):
        register_reward("kernel-opt")(REWARD)
