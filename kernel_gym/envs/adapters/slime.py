"""slime: a reward function for `--custom-rm-path kernel_gym.envs.adapters.slime.custom_rm`.

The label of a sample is the task id; `metadata["seed"]` fixes unseen workloads and data. slime asks
for numbers, but a sample may be left out: it gets the reward None, `remove_sample` and the status
`aborted`. `--group-rm` passes a whole group, which is evaluated in parallel.

Without this package on the trainer's machine, use `--rm-type remote_rm` with
`--rm-url http://judge:8000/v1/slime`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from kernel_gym.envs.adapters.scoring import RowColumns, score
from kernel_gym.envs.sessions import Sessions


class SlimeSample(Protocol):
    """The used part of slime's samples."""

    response: str
    label: str
    """The task id."""
    metadata: RowColumns | None
    status: Enum
    remove_sample: bool


async def custom_rm(
    args: object,
    sample: SlimeSample | Sequence[SlimeSample],
    sessions: Sessions | None = None,
    **_: object,
) -> float | list[float | None] | None:
    """The reward of a sample, or the list of those of a group.

    Args:
        args: The arguments of slime; not used.
        sample: A `Sample` of slime, or a list of them.
        sessions: Begins the episodes; by default those of the process.

    Raises:
        UnknownName: A label is no task id; the message has near matches.
    """
    if isinstance(sample, Sequence):
        return await asyncio.gather(*(_reward(item, sessions) for item in sample))
    return await _reward(sample, sessions)


async def _reward(sample: SlimeSample, sessions: Sessions | None) -> float | None:
    metadata: RowColumns = sample.metadata or {}
    step = await score(sample.response, sample.label, metadata.get("seed"), sessions)
    if step.reward is None:
        sample.remove_sample = True
        sample.status = type(sample.status)("aborted")
    return step.episode_reward
