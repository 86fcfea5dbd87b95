"""The calls of the client without input and output: generators of requests that take answers.

The synchronous and the asynchronous client drive the same generators, so that both try again, wait
and refuse in the same way.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from kernel_gym.client.errors import Refused, ServiceError, Unavailable
from kernel_gym.client.wire import (
    MAX_BATCH,
    MAX_WAIT,
    Batch,
    Info,
    Message,
    Result,
    Results,
    SessionInfo,
    SessionStart,
    SessionToken,
    StepResult,
    Submission,
    TaskInfo,
    TaskNames,
    TurnRequest,
)

M = TypeVar("M", bound=BaseModel)
AGAIN = (408, 425, 429)
"""Statuses below 500 after which a request is sent again; all statuses from 500 on are too."""
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.1, 15.0
"""Seconds before the second try, and most seconds between two tries."""
MAX_ABSENCE_SECONDS = 2.0
"""The same if nobody answers: a service that was started again soon has its clients back."""
POLL = 30.0
"""Seconds for which a request waits for its result."""


@dataclass(frozen=True)
class Ask:
    """A request to send."""

    method: str
    path: str
    body: Message | None = None
    query: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Pause:
    """Seconds to wait before the next request."""

    seconds: float


@dataclass(frozen=True)
class HttpAnswer:
    """The answer to a request; status 0 means that none came, and `body` says why."""

    status: int
    body: bytes
    retry_after: float = 0.0


Call = Generator[Ask | Pause, HttpAnswer | None, M]
"""Yields requests and pauses, takes answers (None after a pause), and returns a message."""


def ask(request: Ask, kind: type[M], patience: float) -> Call[M]:
    """Sends a request until it is answered.

    Every request that changes something has an idempotency key, so that it may be sent again.

    Args:
        request: The request.
        kind: What the answer has to be.
        patience: Seconds to wait for a service that does not answer or is busy.

    Raises:
        Refused: The service answered with a status from 400 to 499.
        Unavailable: The patience is at an end.
        ServiceError: The answer is not what it should be.
    """
    ends, wait = time.monotonic() + patience, FIRST_RETRY_SECONDS
    while True:
        answer = yield request
        assert answer is not None
        if 200 <= answer.status < 300:
            return _parsed(answer.body, kind)
        told = _told(answer)
        if 400 <= answer.status < 500 and answer.status not in AGAIN:
            raise Refused(answer.status, told)
        longest = MAX_RETRY_SECONDS if answer.status else MAX_ABSENCE_SECONDS
        pause = max(min(wait, longest) * random.uniform(0.5, 1.0), answer.retry_after)
        if time.monotonic() + pause > ends:
            raise Unavailable(f"no result within {patience:g} s: {told}")
        yield Pause(pause)
        wait = min(2 * wait, MAX_RETRY_SECONDS)


def submit(submissions: Sequence[Submission], patience: float) -> Call[Results]:
    """Queues submissions; each gets a key if it has none.

    Raises:
        ValueError: There are too many.
    """
    if not 0 < len(submissions) <= MAX_BATCH:
        raise ValueError(f"found {len(submissions)} submissions, expected 1 to {MAX_BATCH}")
    keyed = tuple(s if s.key else s.model_copy(update={"key": new_key()}) for s in submissions)
    body = Batch(evaluations=keyed)
    return (yield from ask(Ask("POST", "/v1/evaluations", body), Results, patience))


def evaluate(submission: Submission, patience: float) -> Call[Result]:
    """Queues a submission and waits for its result."""
    if submission.key is None:
        submission = submission.model_copy(update={"key": new_key()})
    request = Ask("POST", "/v1/evaluations", submission, {"wait": POLL})
    result = yield from ask(request, Result, patience)
    return (yield from _finished(result, patience))


def result(name: str, wait: float, patience: float) -> Call[Result]:
    """A submission as it is now, or after a wait if it is not done."""
    query = {"wait": min(wait, MAX_WAIT)} if wait else {}
    return (yield from ask(Ask("GET", f"/v1/evaluations/{name}", None, query), Result, patience))


def finished(name: str, patience: float) -> Call[Result]:
    """A submission when it is done."""
    first = yield from result(name, POLL, patience)
    return (yield from _finished(first, patience))


def begin(start: SessionStart, patience: float) -> Call[SessionInfo]:
    """Begins an episode."""
    if start.key is None:
        start = start.model_copy(update={"key": new_key()})
    return (yield from ask(Ask("POST", "/v1/sessions", start), SessionInfo, patience))


def session_token(session: str, patience: float) -> Call[SessionToken]:
    """Asks for a token that is good for one episode."""
    return (yield from ask(Ask("POST", f"/v1/sessions/{session}/token"), SessionToken, patience))


def step(session: str, turn: TurnRequest, patience: float) -> Call[StepResult]:
    """Submits to an episode and waits for the result.

    Raises:
        ServiceError: The service failed on the submission.
    """
    if turn.key is None:
        turn = turn.model_copy(update={"key": new_key()})
    request = Ask("POST", f"/v1/sessions/{session}/submit", turn, {"wait": POLL})
    while True:
        told = yield from ask(request, StepResult, patience)
        if told.state == "done":
            return told
        if told.state.final:
            raise ServiceError(f"evaluation {told.id} is {told.state}: {told.message}")


def info(patience: float) -> Call[Info]:
    """Asks for the description of the service."""
    return (yield from ask(Ask("GET", "/v1/info"), Info, patience))


def tasks(patience: float) -> Call[TaskNames]:
    """The ids of the tasks."""
    return (yield from ask(Ask("GET", "/v1/tasks"), TaskNames, patience))


def task(name: str, patience: float) -> Call[TaskInfo]:
    """A task with its prompt."""
    return (yield from ask(Ask("GET", f"/v1/tasks/{name}"), TaskInfo, patience))


def new_key() -> str:
    """A new idempotency key."""
    return uuid4().hex


def _finished(told: Result, patience: float) -> Call[Result]:
    while not told.state.final:
        told = yield from result(told.id, POLL, patience)
    if told.state != "done":
        raise ServiceError(f"evaluation {told.id} is {told.state}: {told.message}")
    return told


def _parsed(body: bytes, kind: type[M]) -> M:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "answer"
        raise ServiceError(
            f"the service answered with no {kind.__name__}: {where}: {first['msg']}; "
            "is its version another one?"
        ) from None


def _told(answer: HttpAnswer) -> str:
    """The message of an answer in one line."""
    import json

    text = answer.body.decode(errors="replace")
    try:
        content = json.loads(text)
        text = str(content["detail"]) if isinstance(content, dict) else text
    except (ValueError, KeyError, RecursionError):
        pass
    line = " ".join(text.split())[:500]
    return line if answer.status == 0 else f"status {answer.status}: {line}"
