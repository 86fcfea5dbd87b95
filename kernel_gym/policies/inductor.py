"""The policy that submits what PyTorch's compiler writes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from kernel_gym.episodes.chat import Conversation
from kernel_gym.policies.base import Policy, PolicyError, Reply, Response, Stop
from kernel_gym.policies.inductor_module import MAX_AUTOTUNE, NO_CANDIDATE
from kernel_gym.policies.registry import register_policy
from kernel_gym.tasks import Task


@register_policy("inductor")
class Inductor(Policy):
    """Submits TorchInductor's kernels for the reference of a task, once.

    Tasks in HIP and tasks of suites get no submission. The latter have references of others, and
    these run only confined.
    """

    mode = ""

    def reply(self, conversations: Sequence[Conversation], /) -> list[Response]:
        """Submits one source for each conversation."""
        return [
            None if chat.episode.turns else inductor_answer(chat.episode.task, self.mode)
            for chat in conversations
        ]


@register_policy("inductor")
class TunedInductor(Inductor):
    """The same with a mode of `torch.compile`, in which more configurations are timed.

    Args:
        mode: The mode, `max-autotune`.

    Raises:
        PolicyError: It is another mode.
    """

    def __init__(self, mode: str) -> None:
        if mode != MAX_AUTOTUNE:
            raise PolicyError(f"policy 'inductor:MODE': found {mode!r}, expected {MAX_AUTOTUNE!r}")
        self.mode = mode


def inductor_answer(task: Task, mode: str = "") -> Reply | Stop:
    """Returns what PyTorch's compiler writes for a task, or the reason why it writes nothing.

    Args:
        task: The task.
        mode: `max-autotune`, or nothing for the default mode.

    Raises:
        PolicyError: The process of the compiler failed.
    """
    if task.written_in != "triton" or task.problem.suite:
        return Stop("the compiler writes Triton for references of this project alone")
    module = "kernel_gym.policies.inductor_source"
    with tempfile.TemporaryDirectory(prefix="kernel-gym-") as folder:
        done = subprocess.run(
            [sys.executable, "-m", module, task.problem.name, *([mode] if mode else [])],
            env=os.environ | {"TMPDIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder},
            capture_output=True,
            text=True,
        )
    if done.returncode == NO_CANDIDATE:
        return Stop(done.stdout.strip())
    if done.returncode:
        raise PolicyError(f"inductor: {task.id}: {done.stderr.strip().splitlines()[-1:]}")
    return Reply(done.stdout, done.stdout)
