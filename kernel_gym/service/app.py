"""The routes of the service, as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Query, Request
from fastapi.exceptions import HTTPException, RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from kernel_gym.client.wire import (
    MAX_BODY_BYTES,
    MAX_WAIT,
    Batch,
    Info,
    Result,
    Results,
    SessionInfo,
    SessionStart,
    StepResult,
    Submission,
    TaskInfo,
    TurnRequest,
)
from kernel_gym.errors import InputError
from kernel_gym.executors import Executor
from kernel_gym.rewards import UnknownReward
from kernel_gym.service.limits import BodyLimit
from kernel_gym.service.service import Busy, NotFound, Service
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

    app = FastAPI(title="kernel-gym", lifespan=life)
    app.state.service = service
    app.add_middleware(BodyLimit, limit=MAX_BODY_BYTES)
    _add_errors(app, service)
    token = Depends(_token_of(service))
    _add_plain(app, service, token)
    _add_evaluations(app, service, token)
    _add_sessions(app, service, token)
    add_trainers(app, service, token)
    return app


def _token_of(service: Service) -> Any:
    def token_of(authorization: Annotated[str | None, Header()] = None) -> Token:
        """The token of a request."""
        scheme, _, secret = (authorization or "").partition(" ")
        token = service.settings.token_of(secret.strip() if scheme.lower() == "bearer" else None)
        if token is None:
            raise HTTPException(
                401,
                "unknown token: expected the header 'Authorization: Bearer TOKEN'",
                {"WWW-Authenticate": "Bearer"},
            )
        return token

    return token_of


def _add_plain(app: FastAPI, service: Service, token: Any) -> None:
    @app.get("/health")
    async def health() -> JSONResponse:
        """Whether the service takes submissions."""
        state = "stops" if service.draining else "ok"
        content = {
            "status": state,
            "queued": service.store.queued,
            "running": service.dispatcher.running,
        }
        return JSONResponse(content, 503 if service.draining else 200)

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
    async def task(name: str, token: Token = token) -> TaskInfo:
        """A task with its prompt."""
        return service.task(name)


def _add_evaluations(app: FastAPI, service: Service, token: Any) -> None:
    @app.post("/v1/evaluations", status_code=202)
    async def submit(
        body: Batch | Submission,
        response: Response,
        wait: Annotated[float, Query(ge=0, le=MAX_WAIT)] = 0.0,
        token: Token = token,
    ) -> Results | Result:
        """Queues one submission or a batch; with `wait`, waits for the results."""
        batch = body.evaluations if isinstance(body, Batch) else (body,)
        jobs = [await service.wait(job, wait) for job in service.submit(batch, token)]
        if all(job.state.final for job in jobs):
            response.status_code = 200
        results = tuple(service.result(job, token) for job in jobs)
        return Results(evaluations=results) if isinstance(body, Batch) else results[0]

    @app.get("/v1/evaluations/{name}")
    async def result(
        name: str,
        wait: Annotated[float, Query(ge=0, le=MAX_WAIT)] = 0.0,
        token: Token = token,
    ) -> Result:
        """A submission; with `wait`, when it is done or after some seconds."""
        return service.result(await service.wait(service.job(name, token), wait), token)

    @app.delete("/v1/evaluations/{name}")
    async def cancel(name: str, token: Token = token) -> Result:
        """Cancels a submission that is queued; another one stays as it is."""
        service.job(name, token)
        job = service.store.cancel(name, token.name)
        return service.result(job or service.job(name, token), token)

    @app.get("/v1/evaluations/{name}/events", response_class=EventSourceResponse)
    async def events(name: str, token: Token = token) -> AsyncIterator[ServerSentEvent]:
        """Each state of a submission as an event, until it changes no more."""
        job = service.job(name, token)
        while True:
            yield ServerSentEvent(event=str(job.state), data=service.result(job, token))
            if job.state.final or service.draining:
                return
            while not await service.change(job, PING) and not service.draining:
                pass
            job = service.job(name, token)


def _add_sessions(app: FastAPI, service: Service, token: Any) -> None:
    @app.post("/v1/sessions", status_code=201)
    async def begin(start: SessionStart, token: Token = token) -> SessionInfo:
        """Begins an episode."""
        return service.begin(start, token)

    @app.get("/v1/sessions/{name}")
    async def session(name: str, token: Token = token) -> SessionInfo:
        """An episode as it is now."""
        return service.session_info(service.session(name, token))

    @app.post("/v1/sessions/{name}/submit", status_code=202)
    async def submit(
        name: str,
        turn: TurnRequest,
        response: Response,
        wait: Annotated[float, Query(ge=0, le=MAX_WAIT)] = 0.0,
        token: Token = token,
    ) -> StepResult:
        """Submits to an episode; with `wait`, waits for the result."""
        stored = service.session(name, token)
        job = await service.wait(service.submit_turn(stored, turn, token), wait)
        if job.state.final:
            response.status_code = 200
        return service.step(stored, job, token)


def _add_errors(app: FastAPI, service: Service) -> None:
    """Every error is one line, `{"detail": ...}`, and repeats no body."""

    @app.middleware("http")
    async def count(request: Request, call_next: Any) -> Any:
        response = await call_next(request)
        service.dispatcher.metrics.requests.labels(str(response.status_code)).inc()
        return response

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        return _refusal(422, validation_line(error.errors()))

    @app.exception_handler(Busy)
    async def busy(request: Request, error: Busy) -> JSONResponse:
        return _refusal(error.status, str(error), {"Retry-After": str(error.retry_after)})

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


def validation_line(errors: Sequence[Any]) -> str:
    """The errors of a request in one line, without the values that were given."""
    # A body is a batch or one submission: the errors of the one that was not meant are left out.
    batch, single = Batch.__name__, Submission.__name__
    no_batch = any(
        error["type"] == "missing" and tuple(error["loc"][-2:]) == (batch, "evaluations")
        for error in errors
    )
    other = batch if no_batch else single
    told = []
    for error in errors:
        if other in error["loc"]:
            continue
        where = [str(part) for part in error["loc"] if part not in (batch, single)]
        told.append(f"{'.'.join(where)}: {error['msg']}")
    shown = list(dict.fromkeys(told))[:4]
    return "; ".join(shown)
