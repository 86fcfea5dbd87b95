"""The figures of two checkouts: by language and kind, in the form of the stored results."""

from __future__ import annotations

import json

import pytest

from benchmarks.evaluation_cost import Submission, _row, _summary, stored, submissions
from benchmarks.figures import Subject
from kernel_gym.errors import InputError

ROWS = [
    {"language": "Triton", "kind": "right", "before": 2.0, "after": 1.0, "equal": True},
    {"language": "Triton", "kind": "right", "before": 4.0, "after": 8.0, "equal": True},
    {"language": "HIP", "kind": "right", "before": 1.0, "after": 0.5, "equal": True},
    {"language": "HIP", "kind": "wrong", "before": 0.0, "after": 0.0, "equal": True},
]


def test_ratios_are_geometric_means_by_language_and_kind():
    assert _summary(ROWS) == {
        "equal": True,
        "after over before, Triton, right": 1.0,
        "after over before, HIP, right": 0.5,
    }


def test_figures_are_a_file_of_results():
    figures = Subject.model_validate_json(json.dumps(stored(ROWS, "command", "0123abcd")))
    ids = [entry.id for entry in figures.entries]
    assert ids == ["evaluation-cost-triton-right", "evaluation-cost-hip-right"]
    assert {entry.commit for entry in figures.entries} == {"0123abcd"}


def test_a_checkout_that_cannot_judge_has_no_seconds():
    submission = Submission("hip2hip/softmax", "right", "")
    passed = {"outcome": "passed", "message": ""}
    missing = {"outcome": "infra", "message": "the HIP runtime is not built"}
    assert _row(submission, [(2.0, passed), (1.0, passed)])["after"] == 1.0
    with pytest.raises(InputError, match="softmax, before: the HIP runtime is not built"):
        _row(submission, [(0.3, missing), (1.0, passed)])


def test_the_wrong_source_of_a_mix_is_another_one_that_compiles():
    kinds = {s.kind: s.source for s in submissions(["hip2hip/transpose"], mixed=True)}
    assert len(set(kinds.values())) == 3
    assert "not compile" not in kinds["wrong"]
    assert "col = 0; col < cols" in kinds["wrong"]
