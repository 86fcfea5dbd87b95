"""Each tensor argument matters: it is no function of the sizes, and another value is noticed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from kernel_gym.judge.expected import Expected, answer, compare
from kernel_gym.tasks import (
    Problem,
    Scale,
    TensorArg,
    Workload,
    adversarial_workloads,
    get_problem,
    make_inputs,
    problem_names,
    train_workloads,
)

SEEDS = (21, 22)


def _workloads(problem: Problem) -> Iterator[Workload]:
    """Yields the workloads of a problem, small ones first."""
    drawn = adversarial_workloads(problem, Scale.SIM, "hip", 1) + train_workloads(
        problem, Scale.SIM
    )
    yield from sorted(drawn, key=lambda workload: problem.elements(workload.dims))


def _notices(problem: Problem, expected: Expected, name: str, other: torch.Tensor) -> bool:
    """Whether the answer of another argument is refused; True if the two do not fit together."""
    try:
        answered = answer(problem, {**expected.inputs, name: other})
    except (RuntimeError, IndexError, ValueError):
        return True
    rounded = tuple(
        value.to(output.dtype)
        for output, value in zip(answered.outputs, answered.reference, strict=True)
    )
    return not compare(problem, expected, rounded).passed


@pytest.mark.parametrize("name", problem_names())
def test_another_value_of_each_tensor_is_noticed(name):
    problem = get_problem(name)
    left = {arg.name for arg in problem.args if isinstance(arg, TensorArg)}
    constant = set(left)
    for workload in _workloads(problem):
        first, second = (make_inputs(problem, workload, seed) for seed in SEEDS)
        expected = answer(problem, first)
        for arg in sorted(left | constant):
            one, other = first[arg], second[arg]
            same = one.shape == other.shape and torch.equal(one, other)
            if not same:
                constant.discard(arg)
            if arg in left and not same and _notices(problem, expected, arg, other):
                left.discard(arg)
        if not left | constant:
            return
    assert not constant, f"functions of the sizes: {sorted(constant)}"
    assert not left, f"of no effect: {sorted(left)}"
