"""Figures of random graphs through `torch.compile`, from made rows."""

import datetime

from benchmarks.compiled_graphs import GraphRow, figures
from benchmarks.figures import BenchmarkEntry


def new_entry(**fields):
    more = {"machine": "epyc", "commit": "0" * 8, "date": datetime.date(2026, 1, 1), "counts": {}}
    return BenchmarkEntry(subject="compiled-graphs", **{"clock": "none", **more, **fields})


def row(number, **fields):
    graph = {"operators": ("relu", "add"), "dtype": "float32", "size": (7, 64)}
    return GraphRow(number=number, seed=0, timing_model="9", cpu_seconds=2.0, **graph, **fields)


def test_wrong_and_failed_graphs_are_not_right():
    right = row(0, error=1e-6, eager=8e-6, compiled=2e-6)
    wrong = row(1, error=1e-3, eager=6e-6, compiled=3e-6)
    entries = {e.id: e for e in figures([right, wrong, row(2, failed="no")], new_entry).entries}
    count, speedup = entries["compiled-graphs-right"], entries["compiled-graphs-speedup"]
    assert (count.value, count.unit) == (1, "of 3")
    assert float(speedup.value) == 3.0
    assert "6 processor seconds" in speedup.note
