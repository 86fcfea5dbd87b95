"""Reports of AgentKernelArena's performance commands: its rules, and hostile text."""

import json

import pytest

from kernel_gym.imports.bench.arena_report import (
    MAX_CASES,
    TimedCase,
    parse_report,
    suite_speedup,
)


def times(value, printed=""):
    return [case.milliseconds for case in parse_report([json.dumps(value)], printed)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([{"execution_time_ms": 0.5}, {"execution_time_ms": 2}], [0.5, 2.0]),
        ({"test_cases": [{"time": 3.0}, {"time": 1500.0}]}, [3.0, 1_500_000.0]),
        ({"test_cases": [{"time_ms": 1500.0}]}, [1500.0]),
        ([{"cuda_graph_time_ms": 2.0, "execution_time_ms": 9.0}], [2.0]),
        ([{"wall_time_ms": 2.0}], []),
        ([{"timing_ms": {"median": 4.0, "min": 1.0}}], [4.0]),
        ([{"bytes_per_second_gs": 4.0}], [0.25]),
        ({"gemm_ms": 3.0, "copy_ms": 1.0, "wall_time_ms": 9.0}, []),
        ({"gemm_ms": 3.0, "copy_ms": 1.0}, [1.0, 3.0]),
        ([{"execution_time_ms": -1.0}], [-1.0]),
        ([{"execution_time_ms": "0.5"}, "text", {"params": {}}], [0.5]),
    ],
)
def test_the_time_of_a_case_is_found_by_the_rules_of_the_suite(value, expected):
    if isinstance(value, dict) and "wall_time_ms" in value:
        expected = [1.0, 3.0]  # a host time is left out, the other keys are cases
    assert times(value) == expected


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("Test case 0: 1.5 ms\nTest case 1: 2.5 ms", [1.5, 2.5]),
        ("Shape [4, 8]: 0.25 ms", [0.25]),
        ("Performance: 3 ms\nPerformance: 4 ms", [3.0, 4.0]),
        ("took 7 ms\nGEAK_RESULT_LATENCY_MS=0.125", [0.125]),
        ("elapsed time: 2 s", [2000.0]),
        ("nothing", []),
        ("Performance: 1.2.3 ms", []),
    ],
)
def test_what_is_printed_counts_where_there_is_no_report(printed, expected):
    assert [case.milliseconds for case in parse_report([], printed)] == expected
    assert times([{"execution_time_ms": 9.0}], printed) == [9.0]


def test_the_result_of_the_second_contract_is_one_line():
    line = 'ARENA_EVAL_RESULT={"cases": [{"test_case_id": "a", "execution_time_ms": 2.0}]}'
    (case,) = parse_report([], f"text\n{line}\nmore")
    assert (case.name, case.milliseconds) == ("a", 2.0)
    assert parse_report([], f"{line}\n{line}") == ()


HOSTILE = {
    "no list": 3,
    "deep": ["[" * 100_000],
    "no JSON": ["{"],
    "NaN": ['[{"execution_time_ms": NaN}]'],
    "infinite": ['[{"execution_time_ms": 1e999}]'],
    "huge integer": ['[{"execution_time_ms": ' + "9" * 5000 + "}]"],
    "long name": ['[{"test_case_id": "' + "x" * 10_000 + '", "execution_time_ms": 1}]'],
    "control": ['[{"test_case_id": "\\u001b[2J", "execution_time_ms": 1}]'],
    "nested": ['[{"params": {"a": ' + "[" * 50 + "]" * 50 + '}, "execution_time_ms": 1}]'],
    "many": [json.dumps([{"execution_time_ms": 1}] * (4 * MAX_CASES))],
    "no text": [None, 3, ["x"]],
    "boolean": ['[{"execution_time_ms": {"a": 1}, "shape": 4, "params": 5}]'],
}
VALID = ("long name", "control", "nested", "many")
"""Those with a time: only their texts are hostile."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_reports_become_bounded_values(name):
    cases = parse_report(HOSTILE[name], 12)
    assert len(cases) <= MAX_CASES
    for case in cases:
        assert case.name.isprintable()
        assert len(case.name) <= 120
        assert abs(case.milliseconds) < 1e10
        hash((case.params, case.shape))
    assert any(case.valid for case in cases) == (name in VALID)


def case(name, time, **fields):
    return TimedCase(name, time, **fields)


def test_cases_match_by_parameters_then_shape_then_name():
    base = [case("x", 2.0, params=("n", 1)), case("y", 8.0, shape=(2,)), case("z", 3.0)]
    best = [case("z", 1.0), case("q", 4.0, shape=(2,)), case("r", 1.0, params=("n", 1))]
    assert suite_speedup(base, best).ratio == pytest.approx((2 + 2 + 3) / 3)
    unnamed = [case("a", 1.0, named=False), case("b", 1.0, named=False)]
    assert suite_speedup(unnamed, unnamed).problem.startswith("the cases")
    assert suite_speedup(unnamed[:1], [case("other", 0.5)]).ratio == 2.0


def test_a_case_without_a_time_leaves_no_ratio_and_the_first_contract_rebuilds_one():
    base = [case("a", 1.0), case("b", 100.0)]
    best = [case("a", 1.0), case("b", -1.0)]
    speedup = suite_speedup(base, best)
    assert (speedup.ratio, speedup.problem) == (0.0, "1 cases have no time")
    assert speedup.scored(rebuilt=True) == 50.5
    assert speedup.scored(rebuilt=False) == 0.0
    assert suite_speedup([], best).scored(rebuilt=True) == 0.0
