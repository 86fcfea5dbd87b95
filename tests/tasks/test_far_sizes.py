"""At the sizes of a GPU, outputs stay in their types.

Where the right answer is infinite, a check cannot distinguish kernels.
"""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from kernel_gym.tasks import (
    Scale,
    TensorArg,
    adversarial_workloads,
    get_problem,
    make_inputs,
    problem_names,
)
from kernel_gym.tasks.ranges import ranges_of
from kernel_gym.tasks.shapes import shape_of

MAX_ELEMENTS = 100_000_000
MAX_VALUES = 50_000_000
MAX_SHARE = 0.01
"""Share of an output that may lie beyond the end of its type."""
PARALLEL = ("batch", "heads", "kv_heads", "tokens", "rows", "images", "groups", "queries")
"""Axes along which nothing is summed, which are cut down."""
WHOLE = ("spmm_csr",)
"""Problems whose rows share what another axis counts."""


def _cut(problem, dims):
    """Returns sizes of which the parallel axes are small; None if that is still too much."""
    outputs = " ".join(str(output.shape) for output in problem.outputs)
    least = {axis.name: max(axis.low, axis.multiple) for axis in problem.axes}
    for name in PARALLEL:
        if name in dims and name in outputs and problem.name not in WHOLE:
            cut = {**dims, name: min(dims[name], 2 * least[name])}
            dims = cut if problem.legal(cut) else dims
    values = sum(
        math.prod(shape_of(arg.shape, dims))
        for arg in problem.args
        if isinstance(arg, TensorArg) and arg.shape and " of " not in arg.shape  # no prose
    )
    few = problem.elements(dims) <= MAX_ELEMENTS and values <= MAX_VALUES
    return dims if few and problem.legal(dims) else None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if ranges_of(get_problem(name)).apart else pytest.mark.sweep)
        for name in problem_names()
    ],
)
def test_outputs_stay_in_their_types(name):
    problem = get_problem(name)
    for workload in adversarial_workloads(problem, Scale.FULL, "triton", 3):
        dims = _cut(problem, dict(workload.dims))
        if dims is None or workload.dims in problem.adversarial:
            continue
        small = dataclasses.replace(workload, dims=dims)
        for output, values in zip(
            problem.outputs, problem.oracle(**make_inputs(problem, small, 5)), strict=True
        ):
            if output.dtype.is_floating_point and output.dtype.itemsize > 1:
                beyond = (values.double().abs() > torch.finfo(output.dtype).max).double().mean()
                assert beyond <= MAX_SHARE, f"{dims} {workload.distribution} {workload.magnitudes}"
