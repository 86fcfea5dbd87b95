"""Results of suites' evaluators are hostile text, and figures follow the suites' formulas."""

import ast
import json
import statistics

import pytest

from kernel_gym.exchange.arena import read_arena_run
from kernel_gym.exchange.arena_reports import (
    ArenaRun,
    ArenaTask,
    breakdown_json,
    report_text,
    statistics_of,
)
from kernel_gym.exchange.arithmetic import SizedTensor, UnknownValueError, result_of
from kernel_gym.exchange.code_quality import code_quality
from kernel_gym.exchange.geak_eval import read_passes
from kernel_gym.exchange.kernelbenchx import read_results
from kernel_gym.exchange.suite_results import ResultError, parse_flag, parse_speedup
from kernel_gym.exchange.their_results import read_their_results
from kernel_gym.imports.prediction_rows import PredictionError


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), 10**400, "2", True, None])
def test_what_is_no_speedup_is_none(value):
    assert parse_speedup(value) is None


def test_flags_are_true_or_one():
    assert [parse_flag(value) for value in (True, 1, 1.0, "yes", 2, None)] == [True, True] + (
        [False] * 4
    )


def test_results_of_geak_are_read(tmp_path):
    rows = [
        {"pass_num": 1, "file_name": "a.py\x1b[31m", "call_status": 1, "exec_status": 1},
        {"pass_num": 0, "file_name": "b.py", "call_status": 1, "exec_status": 0, "speedup": 9},
    ]
    path = tmp_path / "run/pass_0/NAME_results_0.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(rows))
    first, second = read_their_results(tmp_path / "run")
    assert (first.sample, first.right, first.speedup) == (2, True, None)
    assert "\x1b" not in first.name
    assert (second.called, second.right, second.speedup) == (True, False, None)


@pytest.mark.parametrize(
    "text",
    ["[{}]", '[{"file_name": 1}]', "[3]", "{", "[" * 100_000],
)
def test_malformed_results_of_geak_are_told(tmp_path, text):
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises((ResultError, PredictionError)):
        read_passes(path)


@pytest.mark.parametrize("text", ["[]", "{}", '{"a.py": 1}', '{"a.py": {}}', "{", "[" * 100_000])
def test_malformed_metrics_are_told(tmp_path, text):
    path = tmp_path / "metrics.json"
    path.write_text(text)
    with pytest.raises(ResultError, match="metrics"):
        read_results(path)


@pytest.mark.parametrize(
    "text", ["a: [", "3", "task_name: 3", "pass_correctness: true", "task_name: !!int x"]
)
def test_malformed_workspaces_are_told(tmp_path, text):
    (tmp_path / "one").mkdir()
    (tmp_path / "one/task_result.yaml").write_text(text)
    with pytest.raises(ResultError, match="task_result"):
        read_arena_run(tmp_path)


def test_a_path_without_results_is_told(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(ResultError):
            read_their_results(path)


def tasks():
    return [
        ArenaTask("hip2hip/a", True, True, 2.0, 320.0, ""),
        ArenaTask("hip2hip/b", True, True, 0.5, 170.0, ""),
        ArenaTask("hip2hip/c", True, False, 0.0, 20.0, ""),
        ArenaTask("triton2triton/d", False, False, 0.0, 0.0, ""),
    ]


def test_statistics_are_those_of_the_arena():
    own = statistics_of(tasks(), "total_tasks")
    assert (own["total_tasks"], own["total_score"], own["average_score"]) == (4, 510.0, 127.5)
    assert (own["compilation_pass_rate"], own["correctness_pass_count"]) == (75.0, 2)
    assert (own["speedup_gt_1_rate"], own["valid_speedup_count"]) == (25.0, 2)
    assert own["std_dev_speedup"] == statistics.stdev([2.0, 0.5])
    assert own["p90_speedup"] == statistics.quantiles([2.0, 0.5], n=100)[89]


def test_reports_have_a_line_and_a_type_for_each_task():
    run = ArenaRun("20260101_000000", "me", "MI300")
    value = json.loads(breakdown_json(tasks(), run))
    assert {kind: own["count"] for kind, own in value["task_types"].items()} == {
        "hip2hip": 3,
        "triton2triton": 1,
    }
    lines = report_text(tasks(), run).splitlines()[-4:]
    assert [line.split()[0] for line in lines] == ["PASS", "PASS", "PARTIAL", "FAIL"]


def function(body):
    (node,) = ast.parse("def f(self, x, ms):\n" + "\n".join(f"    {line}" for line in body)).body
    return node


GIVEN = {"self": None, "x": SizedTensor((3, 4), 2), "ms": 1000.0}


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (["return x.numel() * x.element_size() * 2 / (ms / 1000)"], 48),
        (["m, n = x.shape", "flops = 2 * m * n", "flops += 1", "return flops"], 25),
        (["if x.dim() == 2:", "    return x.size(1) ** 2", "return 0"], 16),
        (["return x.shape[-1] if x is not None else 0"], 4),
    ],
)
def test_arithmetic_on_sizes_has_a_value(body, value):
    assert result_of(function(body), GIVEN) == value


@pytest.mark.parametrize(
    "body",
    [
        ["return 9 ** 9 ** 9"],
        ["y = 2 ** 4 ** 4 ** 4", "return y"],
        ["y = 1 << 10**9", "return y"],
        ["return __import__('os').getpid()"],
        ["return x.__class__"],
        ["while True:", "    pass"],
        ["return y"],
        ["return 'text' * 10**9"],
        ["return 1 / 0"],
        ["return 1e308 * 10"],
        ["return max((1, 2) * 10**9)"],
        ["pass"],
    ],
)
def test_anything_else_has_none(body):
    with pytest.raises(UnknownValueError):
        result_of(function(body), GIVEN)


def test_the_code_index_is_that_of_radon():
    pytest.importorskip("radon")
    own = code_quality("# a comment\ndef f(x):\n    return x if x else 0\n")
    assert (own["avg_complexity"], own["max_complexity"]) == (2.0, 2)
    assert (own["total_lines"], own["code_lines"], own["comment_ratio"]) == (4, 2, 0.25)
    assert 0 < own["maintainability_index"] <= 100
    assert code_quality("def f(:") == {}
