"""Begins episodes: the choice of tasks, the reward and the executor that sessions have in common.

`KernelOpt-v0`, every adapter and the service begin their episodes here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Required, TypedDict

import numpy as np

from kernel_gym.devices import describe, resolve
from kernel_gym.envs.choice import TaskChoice, TaskSampler, View
from kernel_gym.episodes.conversation import full_prompt
from kernel_gym.episodes.session import FEEDBACK_CHARS, EpisodeSession, require_room
from kernel_gym.episodes.starts import Starts, improve_prompt
from kernel_gym.executors import Executor, default_workers, is_service, make_executor
from kernel_gym.executors.shared import shared_executor
from kernel_gym.rewards import Context, get_reward

DEFAULT_SUITE = "quickstart"


class Sessions(AbstractContextManager["Sessions"]):
    """Begins episodes with one choice of tasks, one reward and one executor.

    It can be used by many threads at the same time.

    Args:
        executor: Evaluates submissions: an open executor, which stays open; the name of one or the
            URL of a service, such as `http://judge:8000`, which :meth:`close` closes; or None for
            the executor that the environments of this process share.
        task: The tasks that episodes are drawn from, see
            :data:`~kernel_gym.envs.choice.TaskChoice`.
        device: A device name. An open executor and a service have their own.
        reward: A registered reward, a `.toml` file, `module:function`, or a callable.
        max_turns: Submissions of an episode.
        deterministic: Evaluate each submission with the seed 0, for tests.
        starts: Run folders with the kernels that tasks `improve:TASK` start from.
        discount: Discount of the increments, see :mod:`kernel_gym.episodes.session`.
        feedback_chars: Longest feedback, in characters; None for all of it.
        workers: Most evaluations at the same time of an executor that is made here.

    Raises:
        ValueError: A name is unknown or a number is out of range.

    Example:
        >>> with Sessions(task="triton2triton/softmax", max_turns=1) as sessions:
        ...     session = sessions.begin(seed=0)
        ...     step = session.submit("not a kernel")
        >>> step.feedback.splitlines()[0], step.done, session.reward
        ('Does not compile (stage: build).', True, 0.02)
    """

    def __init__(
        self,
        executor: Executor | str | None = None,
        *,
        task: TaskChoice = DEFAULT_SUITE,
        device: str = "auto",
        reward: str | Callable[..., object] = "kernel-opt",
        max_turns: int = 3,
        deterministic: bool = False,
        starts: str | Path | Sequence[str | Path] = (),
        discount: float = 1.0,
        feedback_chars: int | None = FEEDBACK_CHARS,
        workers: int | None = None,
    ) -> None:
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, found {max_turns}")
        require_room(feedback_chars)
        self.reward, self.max_turns = get_reward(reward), max_turns
        self._deterministic, self._discount = deterministic, discount
        self._feedback_chars = feedback_chars
        self._starts = Starts.of_runs([starts] if isinstance(starts, str | Path) else starts)
        self._owned = isinstance(executor, str)
        if isinstance(executor, str):
            executor = _made(executor, device, workers)
        self._executor = executor
        self.device = resolve(device) if executor is None else executor.device
        """The full name of the device."""
        self._arch = describe(self.device).arch
        try:
            self.tasks = TaskSampler(task, self._arch, self._starts)
        except BaseException:  # raised again
            self.close()
            raise

    @property
    def executor(self) -> Executor:
        """The executor. That of the process starts when it is first used."""
        return self._executor or shared_executor(self.device)

    def begin(
        self,
        task: TaskChoice | None = None,
        seed: int | None = None,
        random: np.random.Generator | None = None,
        max_turns: int | None = None,
    ) -> EpisodeSession:
        """Begins an episode.

        Args:
            task: Another choice of tasks for this episode, such as a task id.
            seed: Seed of the task drawn, the unseen workloads and the data; by default the system's
                randomness.
            random: A generator in place of a seed.
            max_turns: Another number of submissions for this episode.

        Raises:
            UnknownName: The task is unknown; the message has near matches.
            ValueError: There is no task to draw, or a number is out of range.
        """
        random = np.random.default_rng(seed) if random is None else random
        tasks = self.tasks if task is None else TaskSampler(task, self._arch, self._starts)
        view = tasks.draw(random)
        return EpisodeSession(
            view.task,
            self.reward,
            self.max_turns if max_turns is None else max_turns,
            None if self._deterministic else int(random.integers(2**63)),
            executor=lambda: self.executor,
            discount=self._discount,
            feedback_chars=self._feedback_chars,
            **self._of(view),
        )

    def prompt(self, task: str) -> str:
        """The prompt of a task, as :meth:`begin` gives it.

        Raises:
            UnknownName: The task is unknown; the message has near matches.
        """
        return self.begin(task, seed=0).prompt

    def close(self) -> None:
        """Closes the executor if it was made here."""
        if self._owned and self._executor is not None:
            self._executor.close()

    def __exit__(self, *_: object) -> None:
        """Closes the executor if it was made here."""
        self.close()

    def _of(self, view: View) -> _Beginning:
        """The prompt of a view. A view with a start pays the gain over the reward of its start."""
        text = full_prompt(self.device)(view.task)
        start = view.start
        if start is None:
            return {"prompt": text}
        earned = self.reward(start.evaluation, Context().of(start.source)).value
        return {
            "prompt": improve_prompt(text, view.task, start),
            "baseline": earned or 0.0,
            "start": start.source,
        }


class _Beginning(TypedDict, total=False):
    """The arguments of an episode that depend on its view."""

    prompt: Required[str]
    baseline: float
    start: str


def _made(executor: str, device: str, workers: int | None) -> Executor:
    if executor == "inline":
        return make_executor(executor, device=device)
    if is_service(executor):
        return make_executor(executor)
    return make_executor(executor, device=device, workers=workers or default_workers(device))
