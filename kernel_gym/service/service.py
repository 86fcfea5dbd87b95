"""The work behind the routes: queue submissions, wait for results, and play episodes."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kernel_gym.client.wire import (
    SEEDS,
    Info,
    Result,
    SessionInfo,
    SessionStart,
    SessionToken,
    State,
    StepResult,
    Submission,
    TaskInfo,
    TurnRequest,
)
from kernel_gym.devices import describe
from kernel_gym.envs.sessions import Sessions
from kernel_gym.episodes.session import EpisodeSession, replayed
from kernel_gym.executors import Executor
from kernel_gym.feedback import feedback
from kernel_gym.hidden import without_hidden_times
from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.profiles import profile_of
from kernel_gym.records import Evaluation
from kernel_gym.rewards import Context, get_reward, reward_names
from kernel_gym.service.dispatch import Dispatcher
from kernel_gym.service.jobs import Job, StoredSession, digest_of, new_id
from kernel_gym.service.refusals import Busy, NotFound
from kernel_gym.service.settings import ANYBODY, Allowed, ServiceSettings, Token
from kernel_gym.service.store import DAY, Store
from kernel_gym.service.tasks import AdmissionsBusy, FoundTasks
from kernel_gym.service.waiting import JobWaiters
from kernel_gym.service.workspaces import session_of_secret, session_secret, workspace_token
from kernel_gym.tasks import Task

HEALTHY = "ok"


class Service:
    """The service without its HTTP side. It must be used in one event loop.

    Args:
        settings: What it allows.
        executor: Evaluates submissions; it is closed with the service.

    Raises:
        UnknownName: The settings name an unknown task.
    """

    def __init__(self, settings: ServiceSettings, executor: Executor) -> None:
        self.settings, self.executor = settings, executor
        self.allowed = Allowed(settings.tasks)
        self.store = Store(settings.folder)
        self._waiters = JobWaiters(self.store.get)
        self.dispatcher = Dispatcher(self.store, executor, self._waiters.changed)
        self.draining = False
        self._tasks = FoundTasks(self.allowed, describe(executor.device).arch)
        self._prompts = Sessions(executor, max_turns=1)

    @property
    def state(self) -> str:
        """`ok`, `stops`, or why nothing is evaluated."""
        if self.draining:
            return "stops"
        if not self.dispatcher.alive:
            return "the dispatcher has ended: start the service again"
        return self.dispatcher.trouble or self.executor.trouble or HEALTHY

    def start(self) -> None:
        """Starts to evaluate what is queued."""
        self._waiters.start()
        self.dispatcher.start()

    def drain(self) -> None:
        """Refuses new submissions and answers those who wait. What is queued stays queued."""
        self.draining = True
        self.dispatcher.drain()
        self._waiters.wake_all()

    def drain_soon(self) -> None:
        """As :meth:`drain`, from a handler of signals or another thread."""
        self._waiters.soon(self.drain)

    def close(self) -> None:
        """Closes the executor, which finishes what runs, and the file."""
        self.drain()
        self.executor.close()
        self.dispatcher.stop()
        self._tasks.close()
        self.store.close()

    def token_of(self, secret: str | None) -> Token | None:
        """The token of a request: one of the settings, or that of a session; None if unknown."""
        session = session_of_secret(self.executor.secret, secret or "")
        if session is None:
            return self.settings.token_of(secret)
        known = {token.name: token for token in self.settings.tokens or (ANYBODY,)}
        owner = known.get(self.store.owner(session) or "")
        return workspace_token(owner, session) if owner else None

    def session_token(self, stored: StoredSession) -> SessionToken:
        """A token for an agent that plays a session and may do nothing else."""
        return SessionToken(token=session_secret(self.executor.secret, stored.id))

    async def submit(self, submissions: Sequence[Submission], token: Token) -> list[Job]:
        """Queues submissions, all or none.

        Raises:
            InputError: A name is unknown, a task does not run on the device, or a key was used.
            Busy: A limit is used up.
        """
        jobs, digests = [], []
        for submission in submissions:
            task = await self.runnable(submission.task, token)
            reward = self.allowed.reward(submission.reward)
            seed = self._seed(submission.seed, submission.source, token)
            key = submission.key or new_id()
            job = Job(
                new_id(),
                token.name,
                key,
                task.id,
                submission.source,
                seed,
                reward,
                submission.priority,
                queued_at=time.time(),
            )
            jobs.append(job)
            digests.append(
                digest_of(task.id, submission.source, submission.seed, reward, submission.priority)
            )
        return self._add(jobs, digests, token)

    def job(self, name: str, token: Token) -> Job:
        """A submission.

        Raises:
            NotFound: The token has none with this id.
        """
        job = self.store.get(name, token.name)
        if job is None or (token.session and job.session != token.session):
            raise NotFound(f"there is no evaluation {name[:64]!r}")
        return job

    async def wait(self, job: Job, seconds: float) -> Job:
        """A submission when it has changed its state for good, or after some seconds."""
        ends = time.monotonic() + seconds
        while not job.state.final and not self.draining:
            left = ends - time.monotonic()
            if left <= 0 or not await self.change(job, left):
                break
            job = self.store.get(job.id, job.token) or job
        return job

    async def change(self, job: Job, seconds: float) -> bool:
        """Waits until a submission has another state than a job says; false if it has not."""
        return await self._waiters.change(job, seconds)

    async def result(self, job: Job, token: Token) -> Result:
        """A submission in the form in which a token may see it."""
        told = Result(
            id=job.id,
            key=job.key,
            task=job.task,
            state=job.state,
            reward_name=job.reward,
            message=job.message,
            queued_at=job.queued_at,
            started_at=job.started_at,
            finished_at=job.finished_at,
        )
        if job.evaluation is None:
            return told
        task = await self._stored(job.task, token)
        evaluation = Evaluation.model_validate_json(job.evaluation)
        scored = get_reward(job.reward)(evaluation, Context().of(job.source))
        return told.model_copy(
            update={
                "reward": scored.value,
                "terms": dict(scored.terms),
                "masked": scored.masked,
                "feedback": feedback(task, evaluation),
                "profile": profile_of(evaluation),
                "evaluation": _shown(evaluation, token),
            }
        )

    async def begin(self, start: SessionStart, token: Token) -> SessionInfo:
        """Begins an episode.

        Raises:
            InputError: A name is unknown, or the key was used for something else.
            Busy: The service stops.
        """
        self._require_open()
        task = await self.runnable(start.task, token)
        seed = secrets.randbelow(SEEDS) if start.seed is None else start.seed
        stored = StoredSession(
            new_id(), token.name, start.key or new_id(), task.id,
            self.allowed.reward(start.reward), start.max_turns, seed, start.discount, time.time(),
        )  # fmt: skip
        digest = digest_of(start.model_dump(exclude={"key"}))
        return await self.session_info(self.store.add_session(stored, digest), token)

    def session(self, name: str, token: Token) -> StoredSession:
        """An episode.

        Raises:
            NotFound: The token has none with this id.
        """
        stored = self.store.session(name, token.name)
        if stored is None or token.session not in ("", stored.id):
            raise NotFound(f"there is no session {name[:64]!r}")
        return stored

    async def session_info(self, stored: StoredSession, token: Token) -> SessionInfo:
        """An episode as it is now."""
        task = await self._stored(stored.task, token)
        session = _played(task, stored, self.store.turns(stored.id))
        return SessionInfo(
            id=stored.id,
            task=stored.task,
            prompt=self._prompts.prompt(stored.task),
            reward_name=stored.reward,
            max_turns=stored.max_turns,
            turns=len(session.steps),
            done=session.over,
            episode_reward=session.reward,
        )

    async def submit_turn(self, stored: StoredSession, turn: TurnRequest, token: Token) -> Job:
        """Queues a submission to an episode.

        Raises:
            EpisodeOver: The episode is over.
            KeyConflict: Another submission of the episode is not done, or the key was used.
            Busy: A limit is used up.
        """
        key, digest = turn.key or new_id(), digest_of(stored.id, turn.source)
        task = await self._stored(stored.task, token)
        turns = self.store.turns(stored.id)
        if any(job.key == key for job in turns):  # sent again
            seed, number = 0, 0
        else:
            request = _played(task, stored, turns).request(turn.source)
            seed, number = self._seed(request.seed or 0, turn.source, token), len(turns) + 1
            if any(not job.state.final for job in turns):
                number = len(turns)  # the store refuses a second submission for this turn
        job = Job(
            new_id(), token.name, key, stored.task, turn.source, seed, stored.reward,
            session=stored.id, turn=number, queued_at=time.time(),
        )  # fmt: skip
        return self._add([job], [digest], token)[0]

    async def step(self, stored: StoredSession, job: Job, token: Token) -> StepResult:
        """The result of a submission to an episode."""
        turn = job.turn or 0
        told = StepResult(id=job.id, state=job.state, turn=turn, message=job.message)
        if job.state is not State.DONE:
            return told
        task = await self._stored(stored.task, token)
        turns = [
            stored_turn
            for stored_turn in self.store.turns(stored.id)
            if (stored_turn.turn or 0) <= turn
        ]
        session = _played(task, stored, turns)
        step = session.steps[-1]
        return told.model_copy(
            update={
                "reward": step.reward,
                "increment": step.increment,
                "episode_reward": step.episode_reward,
                "done": step.done,
                "masked": step.masked,
                "feedback": step.feedback,
                "profile": profile_of(step.evaluation),
                "outcome": str(step.evaluation.outcome),
                "best_speedup": session.best_speedup,
                "evaluation": _shown(step.evaluation, token),
            }
        )

    def info(self, token: Token) -> Info:
        """Returns the description of the service."""
        from kernel_gym import __version__

        executor = self.executor
        return Info(
            version=__version__,
            protocol_version=PROTOCOL_VERSION,
            device=executor.device,
            clock=str(describe(executor.device).clock),
            workers=executor.workers,
            room=2 * executor.workers,
            rewards=reward_names(),
            secret_sha256=executor.secret.sha256,
            full_records=token.full_records,
        )

    async def task(self, name: str, token: Token) -> TaskInfo:
        """A task with its prompt.

        Raises:
            UnknownName: There is no such task, or it is not allowed.
        """
        task = await self.runnable(name, token)
        return TaskInfo(
            id=task.id,
            language=task.language,
            entry=task.entry,
            summary=task.problem.summary,
            prompt=self._prompts.prompt(task.id),
        )

    async def runnable(self, name: str, token: Token) -> Task:
        """A task that a request names.

        Raises:
            InputError: It is unknown, not allowed, or does not run on the device.
            Busy: Too many generated tasks wait for their admission.
        """
        with _busy_admissions(token):
            return await self._tasks.requested(name, token.name)

    async def _stored(self, name: str, token: Token) -> Task:
        """The task of a stored submission or session."""
        with _busy_admissions(token):
            return await self._tasks.stored(name, token.name)

    def _seed(self, seed: int | None, source: str, token: Token) -> int:
        """The seed of an evaluation.

        Without whole records it depends on the source too. So nobody learns about the unseen sizes
        of one source from the times of others with the same seed.
        """
        if seed is None:
            return secrets.randbelow(SEEDS)
        if token.full_records:
            return seed
        digest = hashlib.sha256(f"{seed}/".encode() + source.encode("utf-8")).digest()
        return int.from_bytes(digest[:8], "little") % SEEDS

    def _add(self, jobs: Sequence[Job], digests: Sequence[str], token: Token) -> list[Job]:
        self._require_open()
        new = len(jobs) - self.store.known(token.name, [job.key for job in jobs])
        if new:
            self._require_room(new, token)
        stored = self.store.add(jobs, digests)
        self.dispatcher.wake()
        return stored

    def _require_open(self) -> None:
        if self.draining:
            raise Busy(503, "the service stops; send the request again after its restart")

    def _require_room(self, new: int, token: Token) -> None:
        if self.store.in_flight(token.name) + new > token.in_flight:
            raise Busy(429, f"token {token.name!r} has {token.in_flight} submissions in flight")
        if self.store.used(token.name) + new > token.per_day:
            tomorrow = DAY - int(time.time()) % DAY
            raise Busy(429, f"token {token.name!r} has used its {token.per_day} a day", tomorrow)
        if self.store.queued + new > self.settings.max_queue:
            raise Busy(503, f"the queue is full: {self.settings.max_queue} submissions")


@contextmanager
def _busy_admissions(token: Token) -> Iterator[None]:
    try:
        yield
    except AdmissionsBusy as error:
        whose = f"token {token.name!r}: " if error.by_token else ""
        raise Busy(429 if error.by_token else 503, f"{whose}{error}") from None


def _played(task: Task, stored: StoredSession, turns: Sequence[Job]) -> EpisodeSession:
    reward = get_reward(stored.reward)
    session = EpisodeSession(task, reward, stored.max_turns, stored.seed, discount=stored.discount)
    done = [
        (job.source, Evaluation.model_validate_json(job.evaluation))
        for job in turns
        if job.evaluation is not None
    ]
    return replayed(session, done)


def _shown(evaluation: Evaluation, token: Token) -> Evaluation:
    """The record for a token: what identifies hidden workloads is for trusted ones only."""
    if token.full_records:
        return evaluation
    return without_hidden_times(evaluation).model_copy(update={"seed": None})
