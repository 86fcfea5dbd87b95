"""Generated tasks to train on: those whose problems stand."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_gym.admission.values import check_values
from kernel_gym.tasks.generated.problem import generated_id, seeds
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.registry import get_problem


def generated_tasks(split: str, depth: int) -> Iterator[str]:
    """Ids of generated tasks whose problems stand on values, in order of seeds and without end.

    About one seed of eleven is refused: a graph may lose an input, or its values may cancel so
    that a wrong kernel would pass. A seed takes about a seventh of a second to check, once.

    Args:
        split: "train" or "test"; no seed is in both.
        depth: steps of the graphs, 2 to 6.

    Raises:
        ValueError: there is no such split.
        UnknownName: there are no graphs of this depth.
    """
    for seed in seeds(split):
        name = generated_id(seed, depth)
        if not check_values(get_problem(name), Scale.SIM, seed=0).refused:
            yield name
