"""The validation of the model: data with sources, and what it says now."""

import json
from pathlib import Path

from benchmarks.simulator.benchmark import VALIDATION, Bench, compare_published, compiled, simulate
from benchmarks.simulator.kernels import speed_cases

ROOT = Path(__file__).parents[3]


def test_every_published_figure_has_a_source_and_a_confidence():
    figures = json.loads(VALIDATION.read_text())["figures"]
    assert len(figures) >= 8
    assert all(f["source"] and f["confidence"] and f["value"] > 0 for f in figures)


def test_the_model_meets_published_figures():
    validation = compare_published(Bench())
    assert validation["median_error"] < 0.25
    assert validation["pairs_in_order"] >= 0.9 * validation["pairs"] > 0


def test_samples_give_what_a_full_trace_gives():
    bench = Bench()
    chosen = [c for c in speed_cases() if c.name.startswith(("softmax", "attention causal"))]
    for case in chosen:
        assert abs(simulate(case, bench)["sampling_error"]) < 0.03, case.name


def test_every_case_compiles_and_has_its_own_name():
    cases = speed_cases()
    assert len({case.name for case in cases}) == len(cases) == 16
    bench = Bench()
    assert compiled(bench.engine, cases[0]).instructions > 0
