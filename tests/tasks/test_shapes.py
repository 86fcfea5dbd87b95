"""Shapes in terms of axes: their values, and that the tensors have them."""

from __future__ import annotations

import pytest

from kernel_gym.tasks import (
    Kind,
    ScalarArg,
    Split,
    TensorArg,
    Workload,
    get_problem,
    make_inputs,
    problem_names,
)
from kernel_gym.tasks.formula import load_formula
from kernel_gym.tasks.shapes import shape_of

IN_WORDS = {("deformable_attention", "value")}
"""Sizes that are sums over levels. No expression can state them."""


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("", ()),
        ("rows", (5,)),
        ("rows, cols / 4", (5, 2)),
        ("2 * rows + 1, cols - rows", (11, 3)),
        ("(rows - 1) // 3 + 1", (2,)),
        ("ceil(rows / 4) * 4, 7", (8, 7)),
    ],
)
def test_sizes_are_computed(text, shape):
    assert shape_of(text, {"rows": 5, "cols": 8}) == shape


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows, high", r"shape 'rows, high': found 'high', expected one of \['rows'\]"),
        ("rows / 2", "found .*5/2.*, expected whole numbers"),
        ("all of them", "shape 'all of them'"),
        ("rows ^ 2", r"found 'rows \^ 2'"),
        ("__import__('os')", "found .__import__"),
        ("1.5", "found '1.5'"),
    ],
)
def test_what_is_no_size_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        shape_of(text, {"rows": 5})


@pytest.mark.parametrize("name", problem_names())
def test_shapes_that_prompts_state_are_those_of_the_tensors(name):
    problem = get_problem(name)
    dims = load_formula(problem).small
    workload = Workload(dims, Split.TRAIN, Kind.TRAIN, problem.distributions[0])
    for arg, value in zip(problem.args, make_inputs(problem, workload, 0).values(), strict=True):
        if isinstance(arg, TensorArg) and (name, arg.name) not in IN_WORDS:
            assert shape_of(arg.shape, dims) == tuple(value.shape), arg.name
        if isinstance(arg, ScalarArg) and arg.name in dims:
            assert value == dims[arg.name]
    shapes = {output.name: shape_of(output.shape, dims) for output in problem.outputs}
    assert shapes == problem.output_shapes(dims)
