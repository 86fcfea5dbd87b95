"""The policy that submits what PyTorch's compiler writes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from kernel_gym.episodes.chat import Conversation
from kernel_gym.policies.base import Policy, PolicyError, Reply, Response, Stop
from kernel_gym.policies.registry import register_policy
from kernel_gym.tasks import Task

NO_CANDIDATE = 3
"""The exit status of `kernel_gym.policies.inductor_source` where there is no candidate."""


@register_policy("inductor")
class Inductor(Policy):
    """Submits TorchInductor's kernels for the reference of a task, once.

    Tasks in HIP and tasks of suites get no submission. The latter have references of others, and
    these run only confined.
    """

    def reply(self, conversations: Sequence[Conversation], /) -> list[Response]:
        """Submits one source for each conversation."""
        return [
            None if conversation.episode.turns else inductor_answer(conversation.episode.task)
            for conversation in conversations
        ]


def inductor_answer(task: Task) -> Reply | Stop:
    """Returns what PyTorch's compiler writes for a task, or the reason why it writes nothing.

    Raises:
        PolicyError: The process of the compiler failed.
    """
    if task.language != "triton" or task.problem.suite:
        return Stop("the compiler writes Triton for references of this project alone")
    with tempfile.TemporaryDirectory(prefix="kernel-gym-") as folder:
        done = subprocess.run(
            [sys.executable, "-m", "kernel_gym.policies.inductor_source", task.problem.name],
            env=os.environ | {"TMPDIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder},
            capture_output=True,
            text=True,
        )
    if done.returncode == NO_CANDIDATE:
        return Stop(done.stdout.strip())
    if done.returncode:
        raise PolicyError(f"inductor: {task.id}: {done.stderr.strip().splitlines()[-1:]}")
    return Reply(done.stdout, done.stdout)
