"""Generated tasks with problems that pass admission, for training."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile

from kernel_gym.admission.values import check_values
from kernel_gym.tasks.generated.graphs import DEPTHS, count
from kernel_gym.tasks.generated.problem import CACHED, generated_id, seeds
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.registry import get_problem


@lru_cache(maxsize=CACHED)
def refusals(name: str) -> tuple[str, ...]:
    """Returns why a generated problem is no task, such as an input that changes no output.

    `get_task` asks it, so that a refused problem is never played. The check takes a second or so.

    Args:
        name: The name of the problem, such as `generated:seed=1,depth=3`.

    Raises:
        UnknownName: There is no such problem.
    """
    return check_values(get_problem(name), Scale.SIM, seed=0).refused


def generated_tasks(split: str, depth: int) -> Iterator[str]:
    """Yields ids of generated tasks that pass the checks of values, by seed, to the last graph.

    About one seed of twenty is refused, since an input may not matter, or values may cancel so that
    a wrong kernel would pass. The check of a seed takes a second or so.

    Args:
        split: "train" or "test". No seed is in both.
        depth: The number of steps of the graphs, 2 to 6.

    Raises:
        ValueError: There is no such split.
        UnknownName: There are no graphs of this depth.
    """
    graphs = count(depth) if depth in DEPTHS else 1  # one name, so that its error is raised
    for seed in takewhile(lambda seed: seed < graphs, seeds(split)):
        name = generated_id(seed, depth)
        if not refusals(name):
            yield name
