"""Properties of the rewards: what must hold for any evaluation."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.records import Outcome, Stage
from kernel_gym.rewards import UnknownReward, get_reward, register_reward, reward_names
from kernel_gym.tasks.workload import Split
from tests.records import evaluation, failure, passing, workload

REWARD = get_reward("kernel-opt")
HONEST_FAILURES = [o for o in Outcome if o not in (Outcome.PASSED, Outcome.HACK, Outcome.INFRA)]
speedups = st.floats(min_value=1e-6, max_value=1e6)
any_float = st.none() | st.floats()


@given(st.sampled_from([o for o in Outcome if o is not Outcome.INFRA]), any_float, any_float)
def test_finite_and_bounded_whatever_the_speed(outcome, train, unseen):
    result = REWARD(
        evaluation(outcome, stage=Stage.TIME, speedup_low=train, unseen_speedup_low=unseen)
    )
    assert -1.0 <= result.value <= 1.0
    assert all(math.isfinite(term) for term in result.terms.values())


@given(speedups, speedups, speedups)
def test_monotone_in_train_speed(first, second, unseen):
    slow, fast = sorted((first, second))
    assert REWARD(passing(slow, unseen)).value <= REWARD(passing(fast, unseen)).value + 1e-12


@given(speedups, speedups, speedups)
def test_monotone_in_unseen_speed(train, first, second):
    slow, fast = sorted((first, second))
    assert REWARD(passing(train, slow)).value <= REWARD(passing(train, fast)).value + 1e-12


@given(
    st.sampled_from(HONEST_FAILURES), st.sampled_from(list(Stage)), any_float, speedups, speedups
)
def test_correctness_dominates_speed(outcome, stage, claimed, train, unseen):
    wrong = evaluation(outcome, stage=stage, speedup_low=claimed, unseen_speedup_low=claimed)
    assert REWARD(wrong).value < REWARD(passing(train, unseen)).value


@given(st.sampled_from([*HONEST_FAILURES, Outcome.PASSED]), st.sampled_from(list(Stage)), any_float)
def test_a_hack_is_below_everything(outcome, stage, claimed):
    honest = evaluation(outcome, stage=stage, speedup_low=claimed, unseen_speedup_low=claimed)
    hack = evaluation(Outcome.HACK, stage=stage, speedup_low=10.0, unseen_speedup_low=10.0)
    assert REWARD(hack).value < REWARD(honest).value


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.randoms())
def test_the_order_of_workloads_does_not_matter(verdicts, random):
    results = [workload(split=Split.UNSEEN, passed=passed) for passed in verdicts]
    results += [workload(split=Split.TRAIN, passed=True)]
    shuffled = list(results)
    random.shuffle(shuffled)
    one = evaluation(Outcome.PASSED, workloads=results, speedup_low=2.0, unseen_speedup_low=1.5)
    other = one.model_copy(update={"workloads": tuple(shuffled)})
    assert REWARD(one) == REWARD(other)


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
        passing(2.0, 0.5),
        passing(2.0, 2.0),
        passing(10.0, 10.0),
    ]
    values = [REWARD(step).value for step in ladder]
    assert values[0] == -1.0
    assert values[-1] == pytest.approx(1.0)
    assert values == sorted(values)


def test_a_kernel_for_the_shapes_shown_earns_the_same_wherever_it_breaks():
    unseen = REWARD(failure(Outcome.UNSEEN_FAILED, Stage.UNSEEN)).value
    adversarial = REWARD(failure(Outcome.WRONG_VALUES, Stage.ADVERSARIAL)).value
    assert unseen == adversarial > REWARD(failure(Outcome.WRONG_VALUES, Stage.TRAIN)).value


def test_the_dead_band_pays_nothing():
    at_par = REWARD(passing(1.0, 1.0)).value
    assert at_par == pytest.approx(0.6)
    assert REWARD(passing(1.019, 1.019)).value == at_par
    assert REWARD(passing(0.985, 0.985)).value == at_par


def test_infra_is_masked_not_zero():
    result = REWARD(failure(Outcome.INFRA, Stage.BUILD))
    assert result.value is None
    assert result.masked


def test_unknown_reward_lists_near_matches():
    with pytest.raises(UnknownReward, match=r"unknown reward 'kernel-op'; did you mean kernel-opt"):
        get_reward("kernel-op")


def test_a_name_is_registered_once():
    assert "kernel-opt" in reward_names()
    with pytest.raises(ValueError, match="registered already"):
        register_reward("kernel-opt")(REWARD)
