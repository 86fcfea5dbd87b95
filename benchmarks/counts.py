"""Sizes of today's tree: the numbers that figures speak of."""

from __future__ import annotations

from typing import Literal

from kernel_gym.commands.exploits import EXAMPLES, SUITE
from kernel_gym.exploits.attacks import load_attacks
from kernel_gym.exploits.loader import honest_candidates, load_exploits
from kernel_gym.tasks import problem_names, task_ids

CountName = Literal["problems", "tasks", "exploits", "agent_attacks", "honest_kernels"]


def counts_of_tree() -> dict[CountName, int]:
    """Returns the number of things of each kind in the tree, for all devices together."""
    return {
        "problems": len(problem_names()),
        "tasks": len(task_ids()),
        "exploits": len(load_exploits(SUITE)),
        "agent_attacks": len(load_attacks(SUITE)),
        "honest_kernels": len(honest_candidates(EXAMPLES)),
    }
