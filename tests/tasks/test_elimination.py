"""Solvers of small linear systems: fast divisions of a GPU pass, half precision does not.

The bounds are tightest where n is 1: one division and nothing else. PTX lets `div.full.f32` err by
2 units in the last place, and `sqrt.approx.f32` by one.
"""

import pytest
import torch

from kernel_gym.tasks import Kind, Split, Workload, get_problem, make_inputs

SYSTEMS = 4096


def moved(x, units):
    """Returns float32 neighbours of x, a number of steps further from zero."""
    for _ in range(units):
        x = torch.nextafter(x, x.sign() * torch.inf)
    return x


def solution(a, b):
    return moved(b / a, 2)


def inverse(a):
    return moved(1 / a, 2)


def factor(a):
    root = a.sqrt()
    return moved(a / torch.nextafter(root, torch.zeros(())), 2)


@pytest.mark.parametrize(
    ("name", "dims", "solve"),
    [
        ("triangular_solve", {"rights": 1}, solution),
        ("batched_inverse", {}, inverse),
        ("batched_cholesky", {}, factor),
    ],
)
def test_what_fast_divisions_leave_is_right_and_what_half_precision_leaves_is_not(
    name, dims, solve
):
    problem = get_problem(name)
    workload = Workload({"batch": SYSTEMS, "n": 1, **dims}, Split.UNSEEN, Kind.EDGE)
    inputs = make_inputs(problem, workload, seed=5)
    (expected,) = problem.oracle(**inputs)
    solution = solve(**inputs)
    (output,) = problem.outputs
    assert not problem.mismatches(output.name, solution, inputs, expected).any()
    coarse = solution.half().float()
    wrong = problem.mismatches(output.name, coarse, inputs, expected)
    assert wrong.float().mean() > 0.95
