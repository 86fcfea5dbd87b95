"""The model of PyTorch operators against stored head-room of a GPU."""

from __future__ import annotations

import pytest

from benchmarks.measured_head_room import (
    ComparedBaseline,
    compared_baselines,
    measured_head_room,
    rank_correlation,
)
from kernel_gym.hardware import MI300X
from kernel_gym.tasks.registry import get_problem
from kernel_gym.tasks.task import Mode

NAMES = (
    "add", "softmax", "layer_norm", "cumsum", "row_sort", "top_k", "swiglu", "rope",
    "pairwise_distance", "causal_attention", "batched_cholesky",
)  # fmt: skip


def test_the_model_ranks_baselines_as_the_gpu_did():
    problems = [get_problem(name) for name in NAMES]
    rows = list(compared_baselines(problems, "NVIDIA H200", MI300X))
    assert [row.problem for row in rows] == list(NAMES)
    assert rank_correlation(rows) > 0.8


def test_a_problem_whose_baseline_is_never_pytorch_is_left_out():
    dropout = get_problem("dropout")
    assert measured_head_room("dropout", "NVIDIA H100 80GB HBM3", Mode.TORCH2TRITON) is not None
    assert list(compared_baselines([dropout], "NVIDIA H100 80GB HBM3", MI300X)) == []


def test_a_device_without_verdicts_has_no_head_room():
    assert measured_head_room("add", "no such device", Mode.TORCH2TRITON) is None
    assert list(compared_baselines([get_problem("add")], "no such device", MI300X)) == []


def test_ranks_in_opposite_order():
    rows = [ComparedBaseline(str(i), float(i), float(-i)) for i in range(5)]
    assert rank_correlation(rows) == pytest.approx(-1)
    assert rank_correlation(rows[:1]) != rank_correlation(rows[:1])
