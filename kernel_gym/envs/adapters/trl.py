"""TRL: the environment behind `GRPOTrainer(environment_factory=...)`.

TRL runs the tools of a batch in sequence, so evaluations do not overlap. Use it if you already
train with TRL's tool loop; `kernel-gym train` evaluates a batch in parallel.
"""

from __future__ import annotations

from typing import Any

from kernel_gym.envs.sessions import Sessions
from kernel_gym.episodes.session import EpisodeSession


class KernelTools:
    """One tool, `submit_kernel`, and the reward of the episode.

    TRL makes a pool of these, one for each rollout, and begins an episode with each row of the
    dataset. It appends the prompt to the last user message of the row. The row's `task` names the
    task; it may be absent if the environment has only one. All rollouts of a group begin with the
    same row and so have the same task.

    TRL makes a tool of every public method except `reset` and `get_reward`, so there are no others.

    Args:
        **kwargs: As for :class:`~kernel_gym.envs.sessions.Sessions`: bind them with
            `functools.partial`.

    Example:
        >>> from functools import partial
        >>> factory = partial(KernelTools, task="triton2triton/softmax", device="sim:gfx942")
        >>> environment = factory()
        >>> "softmax" in environment.reset()
        True
        >>> environment.submit_kernel("not a kernel").splitlines()[0]
        'Does not compile (stage: build).'
        >>> environment.get_reward()
        0.02
    """

    def __init__(self, **kwargs: Any) -> None:
        self._sessions = Sessions(**kwargs)
        self._session: EpisodeSession | None = None

    def reset(self, task: str | None = None, seed: int | None = None, **_: object) -> str:
        """Begins an episode; TRL calls it with the columns of a row.

        Args:
            task: A task id.
            seed: Seed of unseen workloads and data; by default the system's randomness. Rollouts
                of a group that should draw the same need it.

        Returns:
            The prompt.

        Raises:
            ValueError: The row names no task, and the environment has more than one, so that the
                rollouts of a group would play different tasks.
        """
        known = self._sessions.tasks.probabilities
        if task is None and len(known) > 1:
            raise ValueError(
                f"the row has no column 'task', and the environment has {len(known)} tasks: "
                "give the dataset that column, or the environment one task"
            )
        self._session = self._sessions.begin(task, seed)
        return self._session.prompt

    def submit_kernel(self, source: str) -> str:
        """Compiles a kernel, checks it against the reference and times it.

        Args:
            source: The whole source text of the kernel, in the form that the task requires.

        Returns:
            The result: the stage that failed and the reason, or the times.
        """
        if self._session is None or self._session.over:
            raise ValueError("The episode is over: no submissions are left.")
        return self._session.submit(source).feedback

    def get_reward(self) -> float | None:
        """The reward of the episode; None, which TRL ignores, if the machine failed."""
        return None if self._session is None else self._session.final_reward()
