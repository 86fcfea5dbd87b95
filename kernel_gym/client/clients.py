"""The synchronous and the asynchronous client.

Both send a request again after a lost connection, status 429 or a status from 500 on, with the same
idempotency key, so that a submission is evaluated once even if the service is restarted meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TypeVar

import httpx
from pydantic import BaseModel

from kernel_gym.client import calls
from kernel_gym.client.calls import Ask, Call, HttpAnswer, Pause
from kernel_gym.client.wire import (
    MAX_WAIT,
    Info,
    Result,
    SessionInfo,
    SessionStart,
    StepResult,
    Submission,
    TaskInfo,
    TurnRequest,
)

M = TypeVar("M", bound=BaseModel)
PATIENCE = 600.0
"""Seconds for which a client waits for a service that is busy or does not answer."""
CONNECTIONS = 512
_LIMITS = httpx.Limits(max_connections=CONNECTIONS)
_TIMEOUT = httpx.Timeout(MAX_WAIT + 30.0, connect=10.0, pool=None)
"""Most connections of a client."""
JSON = {"Content-Type": "application/json"}


class Client:
    """The synchronous client. Threads may share it.

    Args:
        url: The address of the service, such as `http://judge:8000`.
        token: The token; None if the service needs none.
        patience: Seconds to wait for a service that is busy or does not answer.

    Example:
        ```python
        with Client("http://127.0.0.1:8000") as client:
            result = client.evaluate("triton2triton/softmax", source)
        ```
    """

    def __init__(self, url: str, token: str | None = None, patience: float = PATIENCE) -> None:
        self.url, self._patience = url.rstrip("/"), patience
        self._http = httpx.Client(
            base_url=self.url,
            headers=_headers(token),
            timeout=_TIMEOUT,
            limits=_LIMITS,
            trust_env=False,  # no proxy and no credentials of the machine for a named service
        )

    def info(self) -> Info:
        """Returns the description of the service: device, workers, rewards."""
        return self._drive(calls.info(self._patience))

    def tasks(self) -> tuple[str, ...]:
        """The ids of the tasks that requests may name, without generated ones."""
        return self._drive(calls.tasks(self._patience)).root

    def task(self, name: str) -> TaskInfo:
        """A task with its prompt.

        Raises:
            Refused: There is no such task; the message has near matches.
        """
        return self._drive(calls.task(name, self._patience))

    def evaluate(self, task: str, source: str, **options: object) -> Result:
        """Evaluates a submission and waits for the result.

        Args:
            task: A task id.
            source: Any text.
            **options: Further fields of :class:`~kernel_gym.client.wire.Submission`: `seed`,
                `reward`, `priority` and `key`.

        Raises:
            Refused: The service refused it; the message says why.
            Unavailable: The service did not answer for too long.
            ServiceError: The service failed on it.
        """
        submission = Submission.model_validate({"task": task, "source": source, **options})
        return self._drive(calls.evaluate(submission, self._patience))

    def submit(self, submissions: Sequence[Submission]) -> tuple[Result, ...]:
        """Queues submissions, all or none, and returns without waiting for their results."""
        return self._drive(calls.submit(submissions, self._patience)).evaluations

    def result(self, name: str, wait: float = 0.0) -> Result:
        """A submission by its id, after a wait in seconds if it is not done."""
        return self._drive(calls.result(name, wait, self._patience))

    def finished(self, name: str) -> Result:
        """A submission by its id, when it is done."""
        return self._drive(calls.finished(name, self._patience))

    def session(self, task: str, **options: object) -> RemoteSession:
        """Begins an episode.

        Args:
            task: A task id.
            **options: Further fields of :class:`~kernel_gym.client.wire.SessionStart`: `reward`,
                `max_turns`, `seed`, `discount` and `key`.
        """
        start = SessionStart.model_validate({"task": task, **options})
        return RemoteSession(self, self._drive(calls.begin(start, self._patience)))

    def step(self, session: str, source: str, key: str | None = None) -> StepResult:
        """Submits to an episode by its id, and waits for the result."""
        turn = TurnRequest(source=source, key=key)
        return self._drive(calls.step(session, turn, self._patience))

    def session_token(self, session: str) -> str:
        """A token for an agent that plays an episode, by the episode's id.

        It is good for this episode and for nothing else.
        """
        return self._drive(calls.session_token(session, self._patience)).token

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def _drive(self, call: Call[M]) -> M:
        answer: HttpAnswer | None = None
        while True:
            try:
                wanted = call.send(answer)
            except StopIteration as end:
                result: M = end.value
                return result
            if isinstance(wanted, Pause):
                time.sleep(wanted.seconds)
                answer = None
            else:
                try:
                    answer = _answer(
                        self._http.request(
                            wanted.method,
                            wanted.path,
                            params=wanted.query,
                            content=_content(wanted),
                            headers=_content_type(wanted),
                        )
                    )
                except httpx.TransportError as error:
                    answer = _lost(self.url, error)

    def __enter__(self) -> Self:
        """Returns the client."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the connections."""
        self.close()


class AsyncClient:
    """The asynchronous client, with the methods of :class:`Client` as coroutines.

    Args:
        url: The address of the service.
        token: The token; None if the service needs none.
        patience: Seconds to wait for a service that is busy or does not answer.
    """

    def __init__(self, url: str, token: str | None = None, patience: float = PATIENCE) -> None:
        self.url, self._patience = url.rstrip("/"), patience
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers=_headers(token),
            timeout=_TIMEOUT,
            limits=_LIMITS,
            trust_env=False,  # no proxy and no credentials of the machine for a named service
        )

    async def info(self) -> Info:
        """As :meth:`Client.info`."""
        return await self._drive(calls.info(self._patience))

    async def tasks(self) -> tuple[str, ...]:
        """As :meth:`Client.tasks`."""
        return (await self._drive(calls.tasks(self._patience))).root

    async def task(self, name: str) -> TaskInfo:
        """As :meth:`Client.task`."""
        return await self._drive(calls.task(name, self._patience))

    async def evaluate(self, task: str, source: str, **options: object) -> Result:
        """As :meth:`Client.evaluate`."""
        submission = Submission.model_validate({"task": task, "source": source, **options})
        return await self._drive(calls.evaluate(submission, self._patience))

    async def submit(self, submissions: Sequence[Submission]) -> tuple[Result, ...]:
        """As :meth:`Client.submit`."""
        return (await self._drive(calls.submit(submissions, self._patience))).evaluations

    async def result(self, name: str, wait: float = 0.0) -> Result:
        """As :meth:`Client.result`."""
        return await self._drive(calls.result(name, wait, self._patience))

    async def finished(self, name: str) -> Result:
        """As :meth:`Client.finished`."""
        return await self._drive(calls.finished(name, self._patience))

    async def session(self, task: str, **options: object) -> AsyncRemoteSession:
        """As :meth:`Client.session`."""
        start = SessionStart.model_validate({"task": task, **options})
        return AsyncRemoteSession(self, await self._drive(calls.begin(start, self._patience)))

    async def step(self, session: str, source: str, key: str | None = None) -> StepResult:
        """As :meth:`Client.step`."""
        return await self._drive(
            calls.step(session, TurnRequest(source=source, key=key), self._patience)
        )

    async def session_token(self, session: str) -> str:
        """As :meth:`Client.session_token`."""
        return (await self._drive(calls.session_token(session, self._patience))).token

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def _drive(self, call: Call[M]) -> M:
        answer: HttpAnswer | None = None
        while True:
            try:
                wanted = call.send(answer)
            except StopIteration as end:
                result: M = end.value
                return result
            if isinstance(wanted, Pause):
                await asyncio.sleep(wanted.seconds)
                answer = None
            else:
                try:
                    answer = _answer(
                        await self._http.request(
                            wanted.method,
                            wanted.path,
                            params=wanted.query,
                            content=_content(wanted),
                            headers=_content_type(wanted),
                        )
                    )
                except httpx.TransportError as error:
                    answer = _lost(self.url, error)

    async def __aenter__(self) -> Self:
        """Returns the client."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the connections."""
        await self.close()


class RemoteSession:
    """An episode on the service.

    Attributes:
        info: The episode as it began, with its prompt.
    """

    def __init__(self, client: Client, info: SessionInfo) -> None:
        self._client, self.info = client, info

    def submit(self, source: str) -> StepResult:
        """Evaluates a submission, as :meth:`kernel_gym.episodes.session.EpisodeSession.submit`."""
        return self._client.step(self.info.id, source)


class AsyncRemoteSession:
    """An episode on the service, for the asynchronous client.

    Attributes:
        info: The episode as it began, with its prompt.
    """

    def __init__(self, client: AsyncClient, info: SessionInfo) -> None:
        self._client, self.info = client, info

    async def submit(self, source: str) -> StepResult:
        """As :meth:`RemoteSession.submit`."""
        return await self._client.step(self.info.id, source)


def _headers(token: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _content(ask: Ask) -> str | None:
    return None if ask.body is None else ask.body.model_dump_json()


def _content_type(ask: Ask) -> dict[str, str] | None:
    return None if ask.body is None else JSON


def _answer(response: httpx.Response) -> HttpAnswer:
    try:
        after = max(float(response.headers.get("Retry-After", "0")), 0.0)
    except ValueError:
        after = 0.0
    return HttpAnswer(response.status_code, response.content, after)


def _lost(url: str, error: httpx.TransportError) -> HttpAnswer:
    return HttpAnswer(0, f"{url}: {type(error).__name__} {error}".encode())
