"""The policy that submits what PyTorch's compiler writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from kernel_gym.episodes.chat import Conversation
from kernel_gym.policies.base import Policy, PolicyError, Reply, Response, Stop
from kernel_gym.policies.inductor_module import MAX_AUTOTUNE
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
        """Submits one source for each conversation, all from one process."""
        with InductorProcess(self.mode) as compiler:
            return [
                None if chat.episode.turns else compiler.answer(chat.episode.task)
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

    def reply(self, conversations: Sequence[Conversation], /) -> list[Response]:
        """Submits one source for each conversation.

        Each is from a process of its own: modelled times depend a little on what ran before.
        """
        answers: list[Response] = []
        for chat in conversations:
            answers += super().reply([chat])
        return answers


def inductor_answer(task: Task, mode: str = "") -> Reply | Stop:
    """Returns what PyTorch's compiler writes for a task, or the reason why it writes nothing.

    Args:
        task: The task.
        mode: `max-autotune`, or nothing for the default mode.

    Raises:
        PolicyError: The process of the compiler failed.
    """
    with InductorProcess(mode) as compiler:
        return compiler.answer(task)


class InductorProcess:
    """PyTorch's compiler in a process of its own, which starts with the first task.

    A start takes ten times as long as most tasks. One thread may use it at a time.

    Args:
        mode: `max-autotune`, or nothing for the default mode.
    """

    def __init__(self, mode: str = "") -> None:
        self._arguments = [mode] if mode else []
        self._running = ExitStack()
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process = None
        self._running.close()

    def answer(self, task: Task) -> Reply | Stop:
        """Returns what the compiler writes for a task, or the reason why it writes nothing.

        Raises:
            PolicyError: The process failed. The next task starts another one.
        """
        if task.written_in != "triton" or task.problem.suite:
            return Stop("the compiler writes Triton for references of this project alone")
        process = self.process = self.process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended, and gives no line
            process.stdin.write(f"{task.problem.name}\n")
            process.stdin.flush()
        if not (line := process.stdout.readline()):
            lines = self._errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            self.__exit__()
            why = lines[-1] if lines else "the process of the compiler ended"
            raise PolicyError(f"inductor: {task.id}: {why}")
        answer = json.loads(line)
        if "source" not in answer:
            return Stop(answer["reason"])
        return Reply(answer["source"], answer["source"])

    def _started(self) -> subprocess.Popen[str]:
        folder = self._running.enter_context(tempfile.TemporaryDirectory(prefix="kernel-gym-"))
        self._errors = Path(folder) / "errors.txt"
        errors = self._running.enter_context(self._errors.open("w", encoding="utf-8"))
        process = subprocess.Popen(
            [sys.executable, "-m", "kernel_gym.policies.inductor_source", *self._arguments],
            env=os.environ | {"TMPDIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C ends the caller, which ends this process
        )
        self._running.callback(_ended, process)
        return process


def _ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
