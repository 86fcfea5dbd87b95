"""Generated tasks with problems that pass admission, for training."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_gym.admission.values import check_values
from kernel_gym.tasks.generated.problem import generated_id, seeds
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.registry import get_problem


def generated_tasks(split: str, depth: int) -> Iterator[str]:
    """Yields ids of generated tasks that pass the checks of values, by seed, without end.

    About one seed of eleven is refused, since an input may not matter, or values may cancel so that
    a wrong kernel would pass. The check of a seed takes about a seventh of a second.

    Args:
        split: "train" or "test". No seed is in both.
        depth: The number of steps of the graphs, 2 to 6.

    Raises:
        ValueError: There is no such split.
        UnknownName: There are no graphs of this depth.
    """
    for seed in seeds(split):
        name = generated_id(seed, depth)
        if not check_values(get_problem(name), Scale.SIM, seed=0).refused:
            yield name
