"""Values of several traces become expressions of sizes."""

import pytest

from kernel_gym.imports.traced.template import Expression, Unexplained, unify_values


def test_keywords_named_as_a_mark_of_a_reference_hide_no_number():
    made = [{"dict": {"v": {"tensor": "v"}, "longest": n, "scale": 0.5}} for n in (4, 6, 8)]
    unified = unify_values(made, [{"n": 4}, {"n": 6}, {"n": 8}])
    assert unified["dict"]["v"] == {"tensor": "v"}
    assert unified["dict"]["longest"] == Expression("n")


def test_keywords_that_come_and_go_are_refused():
    made = [{"dict": {"v": 1}}, {"dict": {"v": None}}]
    with pytest.raises(Unexplained, match="change their structure"):
        unify_values(made, [{"n": 4}, {"n": 6}])
