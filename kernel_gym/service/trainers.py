"""Routes in the form of trainers that call the URL of a reward model.

They score single replies. The label of a sample is the task id. An evaluation on which the machine
failed has no number, so that the answer is 503 with `Retry-After`; these trainers try again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field

from kernel_gym.client.wire import MAX_BATCH, MAX_WAIT, Name, Source, Submission
from kernel_gym.episodes.reply import extract_source
from kernel_gym.errors import InputError
from kernel_gym.service.service import Busy, Service
from kernel_gym.service.settings import Token

LONGEST = 900.0
"""Seconds for which these routes wait for a result."""


class BadBatch(InputError, ValueError):
    """The parts of a request do not fit together."""


class Labelled(BaseModel):
    """A request of OpenRLHF: replies with their prompts and labels."""

    model_config = ConfigDict(extra="ignore")

    query: Annotated[tuple[Source, ...], Field(min_length=1, max_length=MAX_BATCH)]
    prompts: tuple[Source, ...]
    labels: tuple[Name, ...]


class Sample(BaseModel):
    """A request of slime's `remote_rm`."""

    model_config = ConfigDict(extra="ignore")

    prompt: Any = None
    response: Source
    label: Name


def add_trainers(app: FastAPI, service: Service, token: Any) -> None:
    """Adds the routes.

    Args:
        app: The application.
        service: The service.
        token: The dependency that gives the token of a request.
    """

    @app.post("/v1/openrlhf")
    async def openrlhf(body: Labelled, token: Token = token) -> dict[str, Any]:
        """Rewards for OpenRLHF's `--reward.remote_url`."""
        if not len(body.query) == len(body.prompts) == len(body.labels):
            raise BadBatch("query, prompts and labels: found different lengths, expected one")
        replies = [
            query.removeprefix(prompt)
            for query, prompt in zip(body.query, body.prompts, strict=True)
        ]
        rewards = await _rewards(service, replies, body.labels, token)
        # OpenRLHF sends one reply at a time and takes its reward as a number.
        shown = rewards[0] if len(rewards) == 1 else rewards
        return {"rewards": shown, "scores": shown, "extra_logs": {}}

    @app.post("/v1/slime")
    async def slime(body: Sample, token: Token = token) -> float:
        """The reward for slime's `--rm-type remote_rm`."""
        return (await _rewards(service, [body.response], [body.label], token))[0]


async def _rewards(
    service: Service, replies: Sequence[str], tasks: Sequence[str], token: Token
) -> list[float]:
    submissions = [
        Submission(task=task, source=extract_source(reply, service.allowed.task(task)))
        for reply, task in zip(replies, tasks, strict=True)
    ]
    rewards = []
    for job in service.submit(submissions, token):
        waited = 0.0
        while not job.state.final and waited < LONGEST and not service.draining:
            job = await service.wait(job, MAX_WAIT)
            waited += MAX_WAIT
        reward = service.result(job, token).reward
        if reward is None:
            raise Busy(503, f"{job.task} was not evaluated: the machine failed or is busy", 30)
        rewards.append(reward)
    return rewards
