"""Plays a command-line agent on tasks: a workspace an episode, several at a time.

A run of an agent is a run as any other, with the same metrics and report. Beside the usual files
its folder has:

    workspaces/TASK/sample_K/        the workspace, as the agent left it
    transcripts/TASK/sample_K.N.txt  the output of the agent's N-th start; a resumed run adds one
    agent.jsonl                      a line for each start: seconds, tokens, exit status, reason
    clock.jsonl                      a line for each submission: seconds since the agent's start

An episode that a killed run left unfinished continues in its workspace, with what is left of its
budget. The agent itself starts again.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kernel_gym.agents.desk import Desk, Pool, Recorder
from kernel_gym.agents.launch import Launch
from kernel_gym.agents.presets import PROMPT, Preset
from kernel_gym.agents.process import Ended, Limits, run_agent
from kernel_gym.agents.serve import desk_server, mcp_server
from kernel_gym.agents.workspace import is_untouched, kernel_name, read_kernel, write_workspace
from kernel_gym.records import Evaluation
from kernel_gym.sandbox.confine import FIRST_USER
from kernel_gym.storage.json_lines import append_line
from kernel_gym.storage.run_records import AgentStart, SubmissionTime
from kernel_gym.storage.run_store import CLOCK, STARTS, TRANSCRIPTS, WORKSPACES
from kernel_gym.tasks import Task

_AGENT_USERS = 0x0800_0000
"""Added to the first user id of workers: agents and workers must not share an id."""


@dataclass(frozen=True)
class Manner:
    """How agents are played.

    Attributes:
        preset: The command and what it needs.
        limits: The limits of an episode.
        confined: Whether agents are confined to their workspaces.
        parallel: Episodes at the same time.
    """

    preset: Preset
    limits: Limits
    confined: bool = True
    parallel: int = 1


class LockedPool:
    """An executor that several threads may use."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._lock = pool, threading.Lock()

    def submit(self, task_id: str, source: str, seed: int | None, /) -> Future[Evaluation]:
        """Queues one evaluation."""
        with self._lock:
            return self._pool.submit(task_id, source, seed)


class AgentPlay:
    """Plays an agent on the episodes of a run that are not over.

    Args:
        recorder: Writes the turns to the run.
        pool: Evaluates submissions.
        manner: How agents are played.
        on_end: Called at the end of each episode with its task and its number of turns.
    """

    def __init__(
        self,
        recorder: Recorder,
        pool: Pool,
        manner: Manner,
        on_end: Callable[[Task, int], None] = lambda task, turns: None,
    ) -> None:
        self._recorder, self._manner, self._on_end = recorder, manner, on_end
        self._store = recorder.store
        self._pool = LockedPool(pool)
        self._stop = threading.Event()
        self._users = iter(range(FIRST_USER + _AGENT_USERS + os.getpid() * 256, 1 << 31))

    def play(self, tasks: Iterable[Task]) -> None:
        """Plays all episodes. An interrupt ends the agents and leaves their episodes unfinished."""
        samples = range(1, self._store.config.samples + 1)
        episodes = [
            (task, sample)
            for task in tasks
            for sample in samples
            if not self._store.is_over(task.id, sample)
        ]
        threads = ThreadPoolExecutor(self._manner.parallel)
        try:
            for done in as_completed([threads.submit(self._episode, *e) for e in episodes]):
                done.result()
        finally:
            self._stop.set()
            threads.shutdown(cancel_futures=True)
            self._store.finish()

    def _episode(self, task: Task, sample: int) -> None:
        place = f"{task.id}/sample_{sample}"
        folder = self._store.folder.resolve() / WORKSPACES / place
        desk = Desk(task, self._recorder, self._pool, sample, self._clock(task, sample))
        try:
            ended = self._run(desk, folder, place)
        except OSError as error:  # an earlier start may have left anything there
            desk.verdict(None, f"the workspace cannot be used: {error.strerror}")
        else:
            if self._stop.is_set():
                return
            source, problem = read_kernel(folder, task)
            if is_untouched(source, task) and not desk.episode.turns:
                source, problem = None, f"{kernel_name(task)} was not changed"
            desk.verdict(source, "; ".join(filter(None, (ended.reason, problem))))
        self._on_end(task, len(desk.episode.turns))

    def _run(self, desk: Desk, folder: Path, place: str) -> Ended:
        """Runs the agent of an episode once.

        Raises:
            OSError: The workspace cannot be written or served.
        """
        user = next(self._users)
        number = self._number(place)
        with ExitStack() as stack:
            home = stack.enter_context(TemporaryDirectory(prefix="kernel-gym-", dir="/var/tmp"))
            self._prepare(folder, desk, user)
            stack.enter_context(desk_server(folder, desk))
            stack.enter_context(mcp_server(folder))
            ended = run_agent(
                self._launch(desk.task, folder, user, home),
                self._manner.limits,
                self._store.folder / TRANSCRIPTS / f"{place}.{number}.txt",
                self._manner.preset.tokens,
                self._stop.is_set,
                lambda: desk.judging_seconds,
            )
        self._note(desk, number, ended)
        return ended

    def _clock(self, task: Task, sample: int) -> Callable[[int], None]:
        """Writes when each submission of an episode was recorded."""
        started = time.monotonic()

        def note(turn: int) -> None:
            seconds = round(time.monotonic() - started, 3)
            line = SubmissionTime(task=task.id, sample=sample, turn=turn, seconds=seconds)
            append_line(self._store.folder / CLOCK, line)

        return note

    def _prepare(self, folder: Path, desk: Desk, user: int) -> None:
        """Writes the workspace, or takes the one that a killed run left."""
        if not folder.is_dir() or not any(folder.iterdir()):
            write_workspace(folder, desk.task, self._store.config.device, desk.budget)
        if os.geteuid() == 0 and self._manner.confined:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, user, user, follow_symlinks=False)

    def _launch(self, task: Task, folder: Path, user: int, home: str) -> Launch:
        preset, name = self._manner.preset, kernel_name(task)
        environment = preset.environment() | {
            "KERNEL_GYM_PROMPT": PROMPT.format(kernel=name),
            "KERNEL_GYM_TASK": task.id,
            "KERNEL_GYM_FILE": name,
        }
        return Launch(
            command=preset.command,
            folder=str(folder),
            environment=environment,
            readable=preset.folders(),
            network=preset.network,
            confined=self._manner.confined,
            user=user,
            home=home,
        )

    def _number(self, place: str) -> int:
        """The number of the next start of an episode."""
        number = 1
        while (self._store.folder / TRANSCRIPTS / f"{place}.{number}.txt").exists():
            number += 1
        return number

    def _note(self, desk: Desk, number: int, ended: Ended) -> None:
        with self._recorder.lock:
            append_line(
                self._store.folder / STARTS,
                AgentStart(
                    task=desk.task.id,
                    sample=desk.sample,
                    number=number,
                    status=ended.status,
                    reason=ended.reason,
                    seconds=ended.seconds,
                    tokens=ended.tokens,
                ),
            )
