"""Submissions and episodes as the queue stores them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from uuid import uuid4

from kernel_gym.client.wire import State


@dataclass(frozen=True)
class Job:
    """One submission. The names of its fields are the columns of the table."""

    id: str
    token: str
    key: str
    task: str
    source: str
    seed: int
    reward: str
    priority: int = 0
    session: str | None = None
    turn: int | None = None
    state: State = State.QUEUED
    queued_at: float = 0.0
    started_at: float | None = None
    finished_at: float | None = None
    evaluation: str | None = None
    message: str = ""


@dataclass(frozen=True)
class StoredSession:
    """One episode. The names of its fields are the columns of the table."""

    id: str
    token: str
    key: str
    task: str
    reward: str
    max_turns: int
    seed: int
    discount: float
    created: float


def digest_of(*content: object) -> str:
    """The hash of what a request asks for, by which a repeated key is checked."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def new_id() -> str:
    """A new id, which cannot be guessed."""
    return uuid4().hex


def job_of(row: Sequence) -> Job:
    """The submission of a row of the table."""
    values = dict(zip((field.name for field in fields(Job)), row, strict=True))
    return Job(**values | {"state": State(values["state"])})
