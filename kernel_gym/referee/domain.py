"""The referee's own data for a claim: distributions that its author does not choose.

A wrong kernel may be right on the data that its author states, as `x / 2` is GELU near zero. So a
claim is always judged on further distributions. Those on which the reference has no answer are left
out, since no kernel could be right there: the logarithm of negative numbers, or an overflow.
"""

from __future__ import annotations

import torch

from kernel_gym.judge.expected import compare, expect
from kernel_gym.referee.problem import ClaimedProblem
from kernel_gym.tasks.problem import Dims, Problem, Scale
from kernel_gym.tasks.workload import Kind, Split, Workload

OWN = Problem.distributions
"""The distributions on which every claim is judged."""
SEED = 0


def own_distributions(problem: ClaimedProblem) -> tuple[str, ...]:
    """Returns the referee's distributions on which the reference of a claim has answers.

    Args:
        problem: The problem of the claim.

    Raises:
        Exception: The reference fails in any way; the author of the claim may have written it.
    """
    sizes = (*problem.adversarial, problem.train[Scale.SIM][0])
    return tuple(name for name in OWN if all(_has_answer(problem, dims, name) for dims in sizes))


def _has_answer(problem: ClaimedProblem, dims: Dims, distribution: str) -> bool:
    """Whether the oracle has no NaN, and the reference agrees with it."""
    expected = expect(problem, Workload(dims, Split.TRAIN, Kind.TRAIN, distribution), SEED)
    floating = [out for out in expected.oracle if out.is_floating_point()]
    if any(bool(torch.isnan(out).any()) for out in floating):
        return False
    return compare(problem, expected, expected.reference).passed
