"""Packages of many problems load through the stock client and by plain import."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.deployment import many

STORED = json.loads(Path("benchmarks/results/deployment/packages.json").read_text(encoding="utf-8"))


def test_the_stored_table_has_all_tasks_and_says_why_some_do_not_work():
    rows = STORED["packages"]
    assert [row["task"] for row in rows] == list(many.TASKS)
    for row in rows:
        reasons = [row["written"], *(row.get(way, "works") for way in many.WAYS)]
        assert row["works"] == (reasons == ["", "works", "works"])
    working = [row["task"] for row in rows if row["works"]]
    assert len(working) >= 20
    assert sum(task.endswith("_backward") for task in working) >= 8
    assert sum(task.startswith("torch2hip") for task in working) >= 4


@pytest.mark.sweep
@pytest.mark.timeout(3600)
def test_all_packages_work_as_stored(tmp_path):
    pytest.importorskip("kernels")
    assert many.run(tmp_path) == STORED["packages"]


def test_one_package_works_in_both_ways(tmp_path):
    pytest.importorskip("kernels")
    (row,) = many.run(tmp_path, ("torch2hip/silu",))
    assert row == {
        "task": "torch2hip/silu",
        "works": True,
        "written": "",
        "get_local_kernel": "works",
        "import": "works",
    }
