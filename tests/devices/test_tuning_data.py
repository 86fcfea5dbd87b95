"""Data for host code that tunes itself: the layout of a call, and never its values."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from kernel_gym.devices.tuning_data import tuning_inputs
from kernel_gym.tasks import (
    Layout,
    Scale,
    get_problem,
    make_inputs,
    problem_names,
    train_workloads,
)


@pytest.mark.parametrize("name", problem_names())
def test_every_problem_has_tuning_data_of_its_own(name):
    problem = get_problem(name)
    workload = train_workloads(problem, Scale.SIM)[-1]
    given = make_inputs(problem, workload, seed=5)
    drawn = tuning_inputs(problem, given, workload.dims)
    assert list(drawn) == list(given)
    kept = [value is given[name] for name, value in drawn.items() if torch.is_tensor(value)]
    assert kept
    assert not any(kept)
    for name, value in given.items():
        if torch.is_tensor(value):
            assert drawn[name].shape == value.shape
            assert drawn[name].stride() == value.stride()
            assert drawn[name].dtype == value.dtype
        else:
            assert drawn[name] == value


def test_tuning_data_have_the_storage_of_the_call():
    problem = get_problem("softmax")
    workload = replace(train_workloads(problem, Scale.SIM)[0], layout=Layout.STRIDED)
    given = make_inputs(problem, workload, seed=5)["x"]
    drawn = tuning_inputs(problem, {"x": given}, workload.dims)["x"]
    assert drawn.untyped_storage().nbytes() == given.untyped_storage().nbytes()
    assert drawn.storage_offset() == given.storage_offset()
    assert not torch.equal(drawn, given)


def test_tuning_data_of_an_expanded_tensor_share_memory_as_those_of_the_call():
    problem = get_problem("softmax")
    workload = train_workloads(problem, Scale.SIM)[0]
    drawn = make_inputs(problem, workload, seed=5)["x"]
    given = drawn[:1].expand_as(drawn)
    tuning = tuning_inputs(problem, {"x": given}, workload.dims)["x"]
    assert tuning.stride() == given.stride()
    assert not torch.equal(tuning, given)
