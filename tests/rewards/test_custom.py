"""Custom rewards: terms, TOML tables, functions."""

import math

import pytest

from kernel_gym.records import Outcome, Stage
from kernel_gym.rewards import (
    Context,
    Part,
    Recipe,
    RewardError,
    RewardResult,
    get_reward,
    term,
    term_names,
)
from kernel_gym.rewards.terms import value_of
from tests.records import failure, passing

TABLE = """
source = "a test"
gamma = 0.4
gates = ["passed"]
[terms]
carried_speed = 0.5
capped = { term = "speedup", weight = 2.0, cap = 1.5 }
[ungated]
hack = -3.0
length = { weight = -0.1, free = 10, worst = 20 }
"""


def by_lines(evaluation):
    """A reward as a user would write it."""
    return math.inf if evaluation.outcome is Outcome.PASSED else None


def test_a_toml_table(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TABLE)
    reward = get_reward(str(path))
    assert (reward.name, reward.gamma) == ("mine", 0.4)
    result = reward(passing(10.0, 10.0), Context(source_chars=15))
    assert result.value == pytest.approx(0.5 + 2 * 1.5 - 0.05)
    assert set(result.terms) == {"passed", "carried_speed", "capped", "hack", "length"}
    assert reward(failure(Outcome.HACK, Stage.TIME)).value == -3.0


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("colour = 1", ["'colour'", "gates, terms"]),
        ('gates = "passed"', ["'gates'", "a list"]),
        ("[terms]\nsped = 1", ["'terms.sped'", "did you mean", "speed"]),
        ('[terms]\nspeed = "much"', ["'terms.speed'", "'much'", "weight"]),
        ("[terms]\nspeed = { weight = 1, cap = 2 }", ["'speed'", "'cap'"]),
        ('[terms]\nspeedup = { mean = "mode" }', ["'mode'", "geometric"]),
        ("gamma = 2.0", ["gamma", "2.0"]),
        ("[terms]\nspeed = nan", ["'speed'", "nan"]),
        ("x = ", ["invalid TOML"]),
    ],
)
def test_a_malformed_table_says_where_and_what(tmp_path, text, parts):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(RewardError) as caught:
        get_reward(str(path))
    for part in [str(path), *parts]:
        assert part in str(caught.value)


def test_a_file_that_is_not_there():
    with pytest.raises(RewardError, match="cannot be read"):
        get_reward("no/such.toml")


def test_a_function_gets_finite_values_and_no_infra_outcomes():
    reward = get_reward(by_lines)
    assert reward(passing(1.0, 1.0)).value == 1e6
    assert reward(failure(Outcome.WRONG_VALUES, Stage.TRAIN)).value is None
    assert reward(failure(Outcome.INFRA, Stage.BUILD)).value is None


def test_a_function_by_its_path():
    with pytest.raises(RewardError, match="expected a function"):
        get_reward("math:pi")
    with pytest.raises(RewardError, match="cannot be imported"):
        get_reward("no_such_module:reward")
    assert get_reward("kernel_gym.rewards.correctness:credit")(passing(1.0, 1.0)).value == 0.0


def test_a_term_of_ones_own():
    @term
    def workload_count(evaluation):
        return float(len(evaluation.workloads))

    assert "workload_count" in term_names()
    assert Recipe("count", terms=(Part("workload_count"),))(passing(1.0, 1.0)).value == 4.0
    with pytest.raises(ValueError, match="registered already"):
        term(workload_count)


def test_improvement_is_over_the_best_so_far():
    context = Context().after(passing(2.0, 2.0)).after(passing(1.5, 1.5))
    assert context.best_speedup == 2.0
    assert context.after(failure(Outcome.HACK, Stage.TIME)).best_speedup == 2.0
    assert value_of("improvement", passing(1.9, 1.9), context) == 0.0
    gain = value_of("improvement", passing(4.0, 4.0), context)
    assert gain == pytest.approx(
        value_of("speed", passing(4.0, 4.0)) - value_of("speed", passing(2.0, 2.0))
    )


def test_health_of_the_compiled_kernel():
    good = passing(1.0, 1.0)
    assert value_of("spills", good) == 0.0
    assert value_of("occupancy", good) == 1.0
    (kernel,) = good.kernels
    spilled = kernel.model_copy(update={"vgpr_spills": 300, "waves_per_simd": 2.0})
    bad = good.model_copy(update={"kernels": (kernel, spilled)})
    assert value_of("spills", bad) == 1.0
    assert value_of("occupancy", bad) == 0.25
    assert value_of("occupancy", good.model_copy(update={"kernels": ()})) == 0.0


def test_length_counts_from_a_limit_on():
    assert value_of("length", passing(1, 1), Context(source_chars=8192)) == 0.0
    assert value_of("length", passing(1, 1), Context(source_chars=10**6)) == 1.0
    assert value_of("length", passing(1, 1)) == 0.0


@pytest.mark.parametrize("result", [math.nan, RewardResult(math.nan, {"a": 1.0})])
def test_what_is_not_a_number_is_masked_with_a_warning(result, caplog):
    reward = get_reward(lambda evaluation: result)(passing(2.0, 2.0))
    assert (reward.value, reward.masked) == (None, True)
    assert "is not a number" in caplog.text


def test_a_text_is_no_number():
    with pytest.raises(RewardError, match="found '3', expected a number"):
        get_reward(lambda evaluation: "3")(passing(2.0, 2.0))
