"""The rules by which suites compare answers, on values."""

import pytest
import torch

from kernel_gym.imports.upstream.own_tests import RULES, Differs, precision

ONES = torch.ones(4)
THRESHOLDS = {"cosine_sim": 0.95, "l1_relative": 0.05, "rmse": 0.1}


@pytest.mark.parametrize(
    ("rule", "answer", "expected", "thresholds", "taken"),
    [
        ("printed", "a", "a", None, True),
        ("printed", "a", "b", None, False),
        ("result_gold", ONES * 1.09, ONES, None, True),
        ("result_gold", [ONES * 1.09], [ONES], None, False),  # 1e-3 in lists, as there
        ("result_gold", {"x": ONES}, {"y": ONES}, None, True),  # keys do not count there
        ("result_gold", 3, 4, None, False),
        ("result_gold", None, ONES, None, False),
        ("test_results", {"x": ONES + 1e-6}, {"x": ONES}, None, True),
        ("test_results", {"x": ONES + 1e-3}, {"x": ONES}, None, False),
        ("test_results", {"x": (ONES + 1e-3).half()}, {"x": ONES.half()}, None, True),
        ("test_results", {"x": ONES.half()}, {"x": ONES}, None, False),
        ("test_results", {"y": ONES}, {"x": ONES}, None, False),
        ("test_results", [ONES], [ONES, ONES], None, False),
        ("test_results", {"x": ONES * 1.04}, {"x": ONES}, THRESHOLDS, True),
        ("test_results", {"x": ONES * 1.06}, {"x": ONES}, THRESHOLDS, False),
        ("test_results", {"x": -ONES}, {"x": ONES}, THRESHOLDS, False),
        ("test_results", [0.5], [0.5 + 1e-7], None, True),
        ("test_results", [0.5], [0.6], None, False),
        ("test_results", None, {"x": ONES}, None, False),
    ],
)
def test_each_suite_has_its_rule(rule, answer, expected, thresholds, taken):
    sides = [{rule: value} for value in (answer, expected)]
    if taken:
        RULES[rule](*sides, thresholds)
    else:
        with pytest.raises(Differs):
            RULES[rule](*sides, thresholds)


def test_a_zero_answer_has_no_direction():
    zero = torch.zeros(4)
    assert precision(zero, zero)["cosine_sim"] == 1.0
    assert precision(ONES, zero)["cosine_sim"] == 0.0
    assert precision(ONES, ONES) == {"cosine_sim": pytest.approx(1), "l1_relative": 0, "rmse": 0}
