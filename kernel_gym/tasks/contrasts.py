"""Contrasts: workloads in which some tensors are small while others reach the ends of their ranges.

A kernel that takes small values of one argument for zeros is right wherever other terms are larger,
or where what the argument is multiplied by is small too. A kernel that clips an argument is right
where no value comes near the end of its range. So the tensors of a problem are cut into groups, and
each group in turn is small beside large ones, and large beside small ones. The sizes are a few
steps on each axis, so that contrasts cost little. A problem may state more of them in its
`ranges.toml`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import torch

from kernel_gym.tasks.far_ends import few_steps
from kernel_gym.tasks.problem import Problem, Scale, TensorArg, Value
from kernel_gym.tasks.ranges import Range, is_free, is_wide, ranges_of
from kernel_gym.tasks.scalar_draws import draw_scalars
from kernel_gym.tasks.special_values import SMALL_LEVELS, all_small, over_range
from kernel_gym.tasks.workload import Kind, Magnitude, Split, Workload

MAX_GROUPS = 6
"""Most groups of tensors where each has two workloads."""
MAX_SINGLE_GROUPS = 8
"""Most groups of tensors where each has one."""


def contrasts(problem: Problem, seed: int) -> list[dict[str, Magnitude]]:
    """Returns the magnitudes of tensors in each contrast of one evaluation.

    Every tensor is small in one and large in another, whatever the seed is. Where no tensor stands
    alone in its group, as in layers with many weights, the seed decides which ones share it.
    Where answers underflow, no more than one group is small. Last come those that the problem
    states.

    Args:
        problem: The problem.
        seed: It decides the groups.
    """
    if not problem.special_values:
        return []
    names = [arg.name for arg in problem.args if _takes_part(problem, arg)]
    random.Random(f"{problem.name}/contrasts/{seed}").shuffle(names)
    few = problem.tiny_inputs
    groups = _groups(names, MAX_GROUPS if few else MAX_SINGLE_GROUPS)
    stated = [contrast.magnitudes() for contrast in ranges_of(problem).contrasts]
    if len(groups) < 2:
        both = (Magnitude.SMALL, Magnitude.FAR)
        return [dict.fromkeys(group, size) for group in groups for size in both] + stated
    beside = {Magnitude.SMALL: Magnitude.FAR, Magnitude.FAR: Magnitude.SMALL}
    sizes = [Magnitude.FAR] if few or len(groups) == 2 else []
    sizes += [Magnitude.SMALL] if len(groups) > 2 else []
    apart = ranges_of(problem).apart
    made = [
        _one_far({name: size if name in group else beside[size] for name in names}, apart)
        for group in groups
        for size in sizes
    ]
    return made + stated


def contrast_workloads(
    problem: Problem, scale: Scale, seed: int, rng: random.Random
) -> list[Workload]:
    """Returns a workload for each contrast. All have the same sizes and distribution.

    Args:
        problem: The problem.
        scale: The scale of its workloads.
        seed: It decides the groups of tensors.
        rng: It decides the scalars.
    """
    menu = sorted(name for name in problem.distributions if name != "tiny")
    return [
        Workload(
            few_steps(problem, scale),
            Split.ADVERSARIAL,
            Kind.ADVERSARIAL,
            distribution="normal" if "normal" in menu else menu[0],
            name=f"contrast-{number}",
            scalars=draw_scalars(problem, rng),
            timed=False,
            magnitudes=magnitudes,
        )
        for number, magnitudes in enumerate(contrasts(problem, seed) if menu else [])
    ]


def contrasted(
    problem: Problem, workload: Workload, values: Mapping[str, Value], generator: torch.Generator
) -> dict[str, Value]:
    """Returns the values of a contrast: tensors as `workload.magnitudes` says, others as drawn.

    Args:
        problem: The problem.
        workload: The workload.
        values: What `problem.inputs` has drawn. Tensors on "meta" stay as they are.
        generator: The only source of randomness.
    """
    changed, ranges = dict(values), ranges_of(problem)
    for arg in problem.args:
        size, value = workload.magnitudes.get(arg.name), values[arg.name]
        if size is None or not isinstance(value, torch.Tensor) or value.is_meta:
            continue
        limits = ranges.limits(arg.name)
        if size in (Magnitude.SMALL, Magnitude.SMALL_POSITIVE):
            value = all_small(value, limits, generator)
        elif size is not Magnitude.POSITIVE and limits is not None:
            value = over_range(value, limits, generator)
        signed = size in (Magnitude.SMALL, Magnitude.FAR)
        changed[arg.name] = value if signed else value.abs()
    return changed


def _one_far(magnitudes: dict[str, Magnitude], apart: Sequence[str]) -> dict[str, Magnitude]:
    """Leaves out all large tensors but the first of those whose ends overflow together."""
    far = [name for name, size in magnitudes.items() if name in apart and size is Magnitude.FAR]
    return {name: size for name, size in magnitudes.items() if name not in far[1:]}


def _groups(names: Sequence[str], most: int) -> list[Sequence[str]]:
    """Returns at most a number of groups of about equal size, none of them empty."""
    count = min(len(names), most)
    return [names[number::count] for number in range(count)]


def _takes_part(problem: Problem, arg: object) -> bool:
    if not isinstance(arg, TensorArg) or not is_wide(arg) or not is_free(problem, arg):
        return False
    return _may_be_small(ranges_of(problem).limits(arg.name))


def _may_be_small(limits: Range | None) -> bool:
    low, high = limits or (0, 0)
    return low <= max(SMALL_LEVELS) and high >= -max(SMALL_LEVELS)
