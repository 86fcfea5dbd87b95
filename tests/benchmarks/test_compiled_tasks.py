"""Figures of the compiler's kernels for tasks, from made rows."""

import datetime

from benchmarks.compiled_tasks import REFUSED, CompiledTask, drawn_tasks, figures
from benchmarks.figures import BenchmarkEntry


def new_entry(**fields):
    more = {"machine": "epyc", "commit": "0" * 8, "date": datetime.date(2026, 1, 1), "counts": {}}
    return BenchmarkEntry(subject="compiled-tasks", **{"clock": "none", **more, **fields})


def row(outcome, **fields):
    return CompiledTask(task="torch2triton/add", timing_model="9", outcome=outcome, **fields)


def test_only_tasks_that_pass_are_right_and_have_a_speedup():
    rows = [row("passed", unseen_speedup=speedup) for speedup in (1.0, 4.0)]
    rows += [row("incorrect", unseen_speedup=None), row(REFUSED), row(REFUSED)]
    right, speedup = figures(rows, new_entry).entries
    assert (right.value, right.unit) == (2, "of 5")
    assert "2 no candidate, 1 incorrect" in right.note
    assert float(speedup.value) == 2.0


def test_the_draw_is_fixed():
    assert drawn_tasks(3) == drawn_tasks(3)
    assert len(set(drawn_tasks(30))) == 30
