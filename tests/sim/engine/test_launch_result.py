"""Launches whose workgroups are unlike each other are run again, and more of them are recorded."""

from __future__ import annotations

import statistics

import pytest
import torch

from kernel_gym.sim.engine.launch_result import FURTHER_RUNS, MAX_FURTHER_RUNS
from tests.sim import triton_kernels as kernels
from tests.sim.support import launch
from tests.sim.triton_kernels import compiled

GROUPS = 600
LONG = 7
"""Workgroups that do nearly all of the work."""


def unlike(engine, **options):
    """A launch in which few workgroups, somewhere in the grid, have work."""
    lengths = torch.zeros(GROUPS, dtype=torch.int32)
    lengths[torch.randperm(GROUPS, generator=torch.Generator().manual_seed(1))[:LONG]] = 90
    x = torch.arange(128 * 90, dtype=torch.float32)
    out = torch.ones(GROUPS * 128)
    text, shared = compiled(kernels.unlike_sums, ["*fp32", "*i32", "*fp32"], BLOCK=128)
    kernel = engine.load(text, shared=shared)
    values = [x, lengths, out]
    result = launch(engine, kernel, (GROUPS,), (256,), values, model_time=True, **options)
    assert result.fault is None, result.fault.message
    expected = 1 + x.view(90, 128).double().sum(0)
    rows = out.view(GROUPS, 128)
    assert torch.allclose(rows[lengths > 0].double(), expected.expand(LONG, 128))
    assert (rows[lengths == 0] == 1).all()
    return result


def test_the_draw_of_recorded_workgroups_does_not_decide_the_time(engine):
    results = [unlike(engine, sample_seed=seed) for seed in range(6)]
    seconds = [result.seconds for result in results]
    assert max(seconds) <= 1.05 * min(seconds)
    whole = unlike(engine, full_trace=True).seconds
    assert statistics.median(seconds) == pytest.approx(whole, rel=0.1)
    assert all(1 <= result.profile[FURTHER_RUNS] <= MAX_FURTHER_RUNS for result in results)


def test_an_audited_launch_has_the_same_time(engine):
    plain, audited = (unlike(engine, sample_seed=3, audit=audit) for audit in (False, True))
    assert audited.seconds == plain.seconds
    assert audited.findings == ()


def test_much_memory_is_not_copied_before_each_launch(engine, monkeypatch):
    monkeypatch.setattr(engine, "kept_limit", 1000)
    result = unlike(engine, sample_seed=3)
    assert FURTHER_RUNS not in result.profile
    assert result.unlike


def test_workgroups_that_are_alike_are_recorded_at_once(engine):
    text, shared = compiled(kernels.copy, ["*fp32", "*fp32", "i32"], BLOCK=1024)
    values = [torch.randn(1 << 18), torch.empty(1 << 18), 1 << 18]
    kernel = engine.load(text, shared=shared)
    result = launch(engine, kernel, (256,), (256,), values, model_time=True)
    assert FURTHER_RUNS not in result.profile
