"""Scores single completions for trainers that call a function of a text.

The functions of verl, OpenRLHF and slime are found by name, so that a configuration cannot pass
them objects. The environment variables below choose where submissions are evaluated.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol, TypedDict

from kernel_gym.envs.sessions import Sessions
from kernel_gym.episodes.reply import extract_source
from kernel_gym.episodes.session import Step

EXECUTOR, DEVICE, REWARD = "KERNEL_GYM_EXECUTOR", "KERNEL_GYM_DEVICE", "KERNEL_GYM_REWARD"
"""Environment variables: the name of an executor or the URL of a service (default `local`), a
device (default `auto`), and a reward (default `kernel-opt`)."""


class RowColumns(TypedDict, total=False):
    """Columns of a dataset's row that every adapter knows. There may be others."""

    seed: int | None
    """The seed of unseen workloads and data."""


class ReplyMessage(Protocol):
    """A reply as an object."""

    content: object


@cache
def process_sessions(max_turns: int = 1) -> Sessions:
    """The sessions of this process, as its environment variables say. They are made on first use.

    Args:
        max_turns: Submissions of an episode.

    Raises:
        ValueError: A variable has an unknown name.
    """
    return Sessions(
        os.environ.get(EXECUTOR, "local"),
        device=os.environ.get(DEVICE, "auto"),
        reward=os.environ.get(REWARD, "kernel-opt"),
        max_turns=max_turns,
    )


async def score(
    text: str, task: str, seed: int | None = None, sessions: Sessions | None = None
) -> Step:
    """Evaluates the submission in one completion.

    Args:
        text: The completion.
        task: The task id, or a view such as `improve:triton2triton/softmax`.
        seed: Seed of unseen workloads and data; by default the system's randomness.
        sessions: Begins the episode; by default those of the process.

    Raises:
        UnknownName: There is no such task.
    """
    session = (sessions or process_sessions()).begin(task, seed, max_turns=1)
    return await session.submit_async(extract_source(text, session.task))


def score_batch(texts: Sequence[str], tasks: Sequence[str]) -> list[Step]:
    """Evaluates the submissions in many completions, in parallel.

    Args:
        texts: The completions.
        tasks: The task id of each.

    Raises:
        UnknownName: There is no such task.
    """

    async def together() -> list[Step]:
        pairs = zip(texts, tasks, strict=True)
        return await asyncio.gather(*(score(text, task) for text, task in pairs))

    return asyncio.run(together())


def facts(step: Step) -> dict[str, object]:
    """Metrics of a step for the logs of trainers: numbers only, with a fixed set of names."""
    speedup = step.evaluation.speedup
    return {
        "passed": float(speedup is not None),
        "speedup": speedup or 0.0,
        "unseen_speedup": step.evaluation.unseen_speedup or 0.0,
        "hack": float(step.evaluation.outcome == "hack"),
    }


def text_of(message: str | Mapping[str, object] | ReplyMessage) -> str:
    """The text of a reply, which is a text, a message, or an object with `content`."""
    if isinstance(message, str):
        return message
    content = message.get("content") if isinstance(message, Mapping) else message.content
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    texts = [part.get("text", "") for part in parts if isinstance(part, Mapping)]
    return "".join(text for text in texts if isinstance(text, str))
