"""The routes of the service, as an ASGI application."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Header, Query, Request
from fastapi.exceptions import HTTPException, RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.middleware.base import RequestResponseEndpoint

from kernel_gym.client.wire import (
    MAX_BODY_BYTES,
    MAX_START_BYTES,
    MAX_TURN_BYTES,
    MAX_WAIT,
    Batch,
    Info,
    Result,
    Results,
    SessionInfo,
    SessionStart,
    SessionToken,
    StepResult,
    Submission,
    TaskInfo,
    TurnRequest,
)
from kernel_gym.errors import InputError
from kernel_gym.executors import Executor
from kernel_gym.rewards import UnknownReward
from kernel_gym.service.bodies import MAX_ERRORS, BodyReader, described
from kernel_gym.service.jobs import Job
from kernel_gym.service.limits import BodyLimit, TooLarge
from kernel_gym.service.refusals import BUSY_SECONDS, Busy, NotFound
from kernel_gym.service.service import HEALTHY, Service
from kernel_gym.service.settings import ServiceSettings, Token
from kernel_gym.service.store import KeyConflict
from kernel_gym.service.trainers import add_trainers
from kernel_gym.tasks.names import UnknownName

MAX_MESSAGE = 1000
"""Most characters of an error."""
PING = 30.0
"""Seconds between two looks at a submission whose events are streamed."""


def make_app(settings: ServiceSettings, executor: Executor) -> FastAPI:
    """The service as an application; `app.state.service` is the service itself.

    Args:
        settings: What it allows.
        executor: Evaluates submissions; it is closed with the service.

    Raises:
        UnknownName: The settings name an unknown task.
    """
    service = Service(settings, executor)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.close()
        bodies.close()

    app = FastAPI(title="kernel-gym", lifespan=life)
    app.state.service = service
    app.add_middleware(BodyLimit, limit=MAX_BODY_BYTES)
    _add_errors(app, service)
    token = Depends(_token_of(service))
    free = Depends(_free(token))
    bodies = BodyReader()
    _add_plain(app, service, token, free)
    _add_evaluations(app, service, token, free, bodies)
    _add_sessions(app, service, token, free, bodies)
    add_trainers(app, service, free, bodies)
    return app


def _token_of(service: Service) -> Callable[..., Awaitable[Token]]:
    # Not in a thread: a client that has sent its request may go away before it is read.
    async def token_of(authorization: Annotated[str | None, Header()] = None) -> Token:
        """The token of a request."""
        scheme, _, secret = (authorization or "").partition(" ")
        token = service.token_of(secret.strip() if scheme.lower() == "bearer" else None)
        if token is None:
            raise HTTPException(
                401,
                "unknown token: expected the header 'Authorization: Bearer TOKEN'",
                {"WWW-Authenticate": "Bearer"},
            )
        return token

    return token_of


def _free(token: Token) -> Callable[..., Awaitable[Token]]:
    async def free(token: Token = token) -> Token:
        """The token of a request that a token for one session may not send."""
        if token.session:
            raise HTTPException(403, "this token is for one session and for nothing else")
        return token

    return free


def _add_plain(app: FastAPI, service: Service, token: Token, free: Token) -> None:
    @app.get("/health")
    async def health() -> JSONResponse:
        """Whether the service takes submissions."""
        content = {
            "status": (state := service.state),
            "queued": service.store.queued,
            "running": service.dispatcher.running,
        }
        return JSONResponse(content, 200 if state == HEALTHY else 503)

    @app.get("/metrics")
    async def metrics() -> Response:
        """The figures for Prometheus."""
        return PlainTextResponse(service.dispatcher.metrics.text(), media_type="text/plain")

    @app.get("/v1/info")
    async def info(token: Token = token) -> Info:
        """Returns the description of the service."""
        return service.info(token)

    @app.get("/v1/tasks")
    async def tasks(token: Token = token) -> tuple[str, ...]:
        """The ids of the tasks that requests may name, without generated ones."""
        return service.allowed.ids()

    @app.get("/v1/tasks/{name:path}")
    async def task(name: str, token: Token = free) -> TaskInfo:
        """A task with its prompt."""
        return await service.task(name, token)


def _add_evaluations(
    app: FastAPI, service: Service, token: Token, free: Token, bodies: BodyReader
) -> None:
    async def own_job(name: str, token: Token = token) -> Job:
        """The submission that a path names; 404 before an answer begins."""
        return service.job(name, token)

    own = Depends(own_job)
    submissions = bodies.of(free, Batch, Submission, max_bytes=MAX_BODY_BYTES)

    @app.post("/v1/evaluations", status_code=202, openapi_extra=described(Batch, Submission))
    async def submit(
        response: Response,
        body: Batch | Submission = submissions,
        wait: Annotated[float, Query(ge=0, le=MAX_WAIT)] = 0.0,
        token: Token = free,
    ) -> Results | Result:
        """Queues one submission or a batch; with `wait`, waits for the results."""
        batch = body.evaluations if isinstance(body, Batch) else (body,)
        queued = await service.submit(batch, token)
        jobs = await asyncio.gather(*(service.wait(job, wait) for job in queued))
        if all(job.state.final for job in jobs):
            response.status_code = 200
        results = tuple([await service.result(job, token) for job in jobs])
        return Results(evaluations=results) if isinstance(body, Batch) else results[0]

    @app.get("/v1/evaluations/{name}")
    async def result(
        job: Job = own,
        wait: Annotated[float, Query(ge=0, le=MAX_WAIT)] = 0.0,
        token: Token = token,
    ) -> Result:
        """A submission; with `wait`, when it is done or after some seconds."""
        return await service.result(await service.wait(job, wait), token)

    @app.delete("/v1/evaluations/{name}")
    async def cancel(job: Job = own, token: Token = free) -> Result:
        """Cancels a submission that is queued; another one stays as it is."""
        return await service.result(service.store.cancel(job.id, token.name) or job, token)

    @app.get("/v1/evaluations/{name}/events", response_class=EventSourceResponse)
    async def events(job: Job = own, token: Token = token) -> AsyncIterator[ServerSentEvent]:
        """Each state of a submission as an event, until it changes no more."""
        while True:
            yield ServerSentEvent(event=str(job.state), data=await service.result(job, token))
            if job.state.final or service.draining:
                return
            while not await service.change(job, PING) and not service.draining:
                pass
            job = service.job(job.id, token)


def _add_sessions(
    app: FastAPI, service: Service, token: Token, free: Token, bodies: BodyReader
) -> None:
    starts = bodies.of(free, SessionStart, max_bytes=MAX_START_BYTES)
    turns = bodies.of(token, TurnRequest, max_bytes=MAX_TURN_BYTES)

    @app.post("/v1/sessions", status_code=201, openapi_extra=described(SessionStart))
    async def begin(token: Token = free, start: SessionStart = starts) -> SessionInfo:
        """Begins an episode."""
        return await service.begin(start, token)

    @app.get("/v1/sessions/{name}")
    async def session(name: str, token: Token = token) -> SessionInfo:
        """An episode as it is now."""
        return await service.session_info(service.session(name, token), token)

    @app.post("/v1/sessions/{name}/token", status_code=201)
    async def session_token(name: str, token: Token = free) -> SessionToken:
        """A token for an agent that plays an episode: it is good for this episode only."""
        return service.session_token(service.session(name, token))

    @app.post("/v1/sessions/{name}/submit", status_code=202, openapi_extra=described(TurnRequest))
    async def submit(
        name: str,
        response: Response,
        turn: TurnRequest = turns,
        wait: Annotated[float, Query(ge=0, le=MAX_WAIT)] = 0.0,
        token: Token = token,
    ) -> StepResult:
        """Submits to an episode; with `wait`, waits for the result."""
        stored = service.session(name, token)
        job = await service.wait(await service.submit_turn(stored, turn, token), wait)
        if job.state.final:
            response.status_code = 200
        return await service.step(stored, job, token)


def _add_errors(app: FastAPI, service: Service) -> None:
    """Every error is one line, `{"detail": ...}`, and repeats no body."""

    @app.middleware("http")
    async def count(request: Request, call_next: RequestResponseEndpoint) -> Response:
        response = await call_next(request)
        service.dispatcher.metrics.requests.labels(str(response.status_code)).inc()
        return response

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        told = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:MAX_ERRORS]]
        return _refusal(422, "; ".join(told))

    @app.exception_handler(TooLarge)
    async def too_large(request: Request, error: TooLarge) -> JSONResponse:
        return _refusal(413, str(error), {"Connection": "close"})

    @app.exception_handler(Busy)
    async def busy(request: Request, error: Busy) -> JSONResponse:
        return _refusal(error.status, str(error), {"Retry-After": str(error.retry_after)})

    @app.exception_handler(sqlite3.OperationalError)
    async def no_queue(request: Request, error: sqlite3.OperationalError) -> JSONResponse:
        why = f"the queue cannot be used now: {error}"
        return _refusal(503, why, {"Retry-After": str(BUSY_SECONDS)})

    @app.exception_handler(InputError)
    async def refused(request: Request, error: InputError) -> JSONResponse:
        return _refusal(_status(error), str(error))


def _status(error: InputError) -> int:
    if isinstance(error, UnknownReward):
        return 422
    if isinstance(error, NotFound | UnknownName):
        return 404
    return 409 if isinstance(error, KeyConflict) else 422


def _refusal(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"detail": message[:MAX_MESSAGE]}, status, headers)
