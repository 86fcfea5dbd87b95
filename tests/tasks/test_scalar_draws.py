"""Hidden workloads draw scalars from their whole range, not only values that a prompt prints."""

from __future__ import annotations

import random

import pytest

from kernel_gym.tasks import (
    Scale,
    adversarial_workloads,
    get_problem,
    problem_names,
    train_workloads,
    unseen_workloads,
)
from kernel_gym.tasks.problem import ScalarArg
from kernel_gym.tasks.scalar_draws import draw_scalar

DECLARING = [name for name in problem_names() if get_problem(name).declared]


@pytest.mark.parametrize("name", DECLARING)
def test_hidden_workloads_draw_between_the_printed_values(name):
    problem = get_problem(name)
    printed = {
        arg.name: {w.scalars[arg.name] for w in train_workloads(problem, Scale.SIM)}
        for arg in problem.declared
    }
    hidden = [
        *adversarial_workloads(problem, Scale.SIM, "triton", 3),
        *unseen_workloads(problem, Scale.SIM, "triton", 3),
    ]
    for arg in problem.declared:
        low, high = min(arg.values), max(arg.values)
        drawn = {workload.scalars[arg.name] for workload in hidden}
        assert all(low <= value <= high and type(value) is arg.type for value in drawn)
        if not arg.ranged:
            assert drawn <= set(arg.values)
        elif arg.type is float or high - low > len(arg.values):
            assert len(drawn - printed[arg.name]) >= 3, arg.name


def test_the_seed_decides_the_scalars_of_adversarial_workloads():
    problem = get_problem("rms_norm_backward")
    first, again, other = (
        [w.scalars for w in adversarial_workloads(problem, Scale.SIM, "triton", seed)]
        for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize("values", [(1e-6, 1e-3), (-1e-3, -1e-6)])
def test_decades_are_alike_likely(values):
    arg = ScalarArg("eps", float, values=values)
    rng = random.Random(0)
    small = sum(abs(draw_scalar(arg, rng)) < 3.16e-5 for _ in range(2000))
    assert 900 < small < 1100


@pytest.mark.parametrize("values", [(0.0, 1.0), (-1.0, 3.0), (0.5, 2.0)])
def test_a_range_of_no_decades_is_uniform(values):
    arg = ScalarArg("share", float, values=values)
    rng = random.Random(0)
    below = sum(draw_scalar(arg, rng) < sum(values) / 2 for _ in range(2000))
    assert 900 < below < 1100


def test_whole_numbers_stay_whole():
    rng = random.Random(0)
    for values in ((2, 10, 1000), (-100, 0, 255), (0, 1)):
        arg = ScalarArg("step", int, values=values)
        drawn = [draw_scalar(arg, rng) for _ in range(300)]
        assert all(type(value) is int for value in drawn)
        assert (min(values), max(values)) == (min(drawn), max(drawn))
