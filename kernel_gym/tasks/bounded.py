"""How often an evaluation catches a kernel that supports a part of the legal domain only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kernel_gym.tasks.far_ends import BEYOND
from kernel_gym.tasks.problem import Axis, Problem, Scale
from kernel_gym.tasks.sampling import adversarial_workloads, train_workloads, unseen_workloads


@dataclass(frozen=True)
class Bounded:
    """A kernel that is right up to `bound` on one axis: twice the largest train size."""

    problem: str
    axis: Axis
    train: int
    bound: int
    reached: int
    """The largest size in any of the evaluations."""
    caught: float
    """Share of the evaluations with a workload beyond the bound."""


def bounded_kernels(problem: Problem, scale: Scale, draws: int) -> Iterator[Bounded]:
    """Yields the axes whose legal sizes exceed twice the train sizes.

    Args:
        problem: The problem to evaluate.
        scale: The scale of its workloads.
        draws: The number of evaluations, one for each seed from 0 on.
    """
    train = [w.dims for w in train_workloads(problem, scale)]
    fixed = [*train, *(w.dims for w in adversarial_workloads(problem, scale, "hip"))]
    drawn = [[w.dims for w in unseen_workloads(problem, scale, "hip", s)] for s in range(draws)]
    for axis in problem.axes:
        largest = max(dims[axis.name] for dims in train)
        if axis.high <= BEYOND * largest:
            continue
        sizes = [max(dims[axis.name] for dims in (*fixed, *seed)) for seed in drawn]
        caught = sum(size > BEYOND * largest for size in sizes) / draws
        yield Bounded(problem.name, axis, largest, BEYOND * largest, max(sizes), caught)


def bounds_table(rows: Iterable[Bounded]) -> str:
    """Returns the table as Markdown, and below it the lowest share of all rows."""
    kept = list(rows)
    lines = [
        "| problem, axis | legal to | train max | checked to | a kernel bounded at | caught |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row.problem} {row.axis.name} | {row.axis.high} | {row.train} | {row.reached} "
        f"| {row.bound} | {row.caught:.0%} |"
        for row in kept
    ]
    least = min((row.caught for row in kept), default=1.0)
    return "\n".join([*lines, "", f"{len(kept)} axes; the least is caught in {least:.0%}."])
