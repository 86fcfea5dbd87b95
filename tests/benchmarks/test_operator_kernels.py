"""The error of the formula for eager PyTorch, from made rows and from the stored figures."""

import datetime
import json

import pytest

from benchmarks.figures import RESULTS, BenchmarkEntry
from benchmarks.operator_kernels import OperatorRow, covering_factor, figures
from kernel_gym.judge.timing.torch_model import FORMULA_FACTOR


def new_entry(**fields):
    more = {"machine": "epyc", "commit": "0" * 8, "date": datetime.date(2026, 1, 1), "counts": {}}
    return BenchmarkEntry(subject="operator-kernels", **{"clock": "none", **more, **fields})


def row(eager):
    case = {"operator": "relu", "size": (7, 64), "dtype": "float32", "timing_model": "10"}
    return OperatorRow(**case, eager=eager, compiled=1.0)


def test_nine_of_ten_cases_are_within_the_factor_in_either_direction():
    ratios = [1.0] * 7 + [0.8, 1.5, 0.1]
    assert covering_factor(ratios) == 1.5
    assert covering_factor([1 / ratio for ratio in ratios]) == pytest.approx(1.5)
    median, factor = figures([row(ratio) for ratio in ratios], new_entry).entries
    assert (float(median.value), float(factor.value)) == (1.0, 1.5)
    assert "from 0.10 to 1.50" in factor.note


def test_the_referee_uses_the_stored_factor():
    entries = json.loads((RESULTS / "operator-kernels.json").read_text())["entries"]
    (stored,) = [e["value"] for e in entries if e["id"] == "operator-kernels-factor"]
    assert stored == FORMULA_FACTOR
