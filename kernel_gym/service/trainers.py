"""Routes in the form of trainers that call the URL of a reward model.

They score single replies. The label of a sample is the task id. An evaluation on which the machine
failed has no number, so that the answer is 503 with `Retry-After`; these trainers try again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field

from kernel_gym.client.wire import (
    MAX_BATCH,
    MAX_BODY_BYTES,
    MAX_WAIT,
    Name,
    Source,
    Submission,
)
from kernel_gym.episodes.reply import extract_source
from kernel_gym.errors import InputError
from kernel_gym.service.bodies import BodyReader, described
from kernel_gym.service.refusals import Busy
from kernel_gym.service.service import Service
from kernel_gym.service.settings import Token

MAX_STRUCTURE_BYTES = 1 << 20
"""Most bytes of a body outside of its texts. Trainers send more than the fields that are read."""
MAX_WAIT_SECONDS = 900.0
"""Seconds for which these routes wait for a result."""


class BadBatch(InputError, ValueError):
    """The parts of a request do not fit together."""


class Labelled(BaseModel):
    """A request of OpenRLHF: replies with their prompts and labels."""

    model_config = ConfigDict(extra="ignore")

    query: Annotated[tuple[Source, ...], Field(min_length=1, max_length=MAX_BATCH)]
    prompts: Annotated[tuple[Source, ...], Field(max_length=MAX_BATCH)]
    labels: Annotated[tuple[Name, ...], Field(max_length=MAX_BATCH)]


class Sample(BaseModel):
    """A request of slime's `remote_rm`."""

    model_config = ConfigDict(extra="ignore")

    prompt: object = None
    response: Source
    label: Name


def add_trainers(app: FastAPI, service: Service, token: Token, bodies: BodyReader) -> None:
    """Adds the routes.

    Args:
        app: The application.
        service: The service.
        token: The dependency that gives the token of a request.
        bodies: Reads bodies.
    """
    limits = {"max_bytes": MAX_BODY_BYTES, "structure": MAX_STRUCTURE_BYTES}
    labelled, sample = bodies.of(token, Labelled, **limits), bodies.of(token, Sample, **limits)

    @app.post("/v1/openrlhf", openapi_extra=described(Labelled))
    async def openrlhf(body: Labelled = labelled, token: Token = token) -> dict[str, object]:
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

    @app.post("/v1/slime", openapi_extra=described(Sample))
    async def slime(body: Sample = sample, token: Token = token) -> float:
        """The reward for slime's `--rm-type remote_rm`."""
        return (await _rewards(service, [body.response], [body.label], token))[0]


async def _rewards(
    service: Service, replies: Sequence[str], tasks: Sequence[str], token: Token
) -> list[float]:
    submissions = []
    for reply, name in zip(replies, tasks, strict=True):
        task = await service.runnable(name, token)
        submissions.append(Submission(task=name, source=extract_source(reply, task)))
    rewards = []
    for job in await service.submit(submissions, token):
        waited = 0.0
        while not job.state.final and waited < MAX_WAIT_SECONDS and not service.draining:
            job = await service.wait(job, MAX_WAIT)
            waited += MAX_WAIT
        reward = (await service.result(job, token)).reward
        if reward is None:
            raise Busy(503, f"{job.task} was not evaluated: the machine failed or is busy", 30)
        rewards.append(reward)
    return rewards
