"""Where the tools of an agent send submissions: a judge in this process, a service, a workspace."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from kernel_gym.agents.desk import Answer, Desk, Pool, Recorder, source_problem
from kernel_gym.agents.workspace import SOCKET, read_settings
from kernel_gym.client import Client, RemoteSession, ServiceError
from kernel_gym.episodes.conversation import full_prompt
from kernel_gym.tasks import Task, get_task
from kernel_gym.tasks.names import UnknownName


class ToolBackend(Protocol):
    """The actions behind an agent's tools. Each returns JSON; `error` is "" or a line."""

    def list_tasks(self) -> list[dict[str, str]]:
        """The tasks: id, language and summary."""
        ...

    def show_task(self, task: str) -> Answer:
        """A task with its prompt."""
        ...

    def submit(self, task: str, source: str) -> Answer:
        """Evaluates a source."""
        ...

    def profile(self, task: str, source: str) -> Answer:
        """The profile of a source."""
        ...

    def best(self, task: str) -> Answer:
        """The best right kernel so far."""
        ...


class LocalTasks:
    """A judge in this process, with one desk for each task.

    Args:
        tasks: The tasks that may be named.
        recorder: Writes the submissions to a run of these tasks.
        pool: Evaluates sources.
        device: The full name of the pool's device.
    """

    def __init__(self, tasks: Sequence[Task], recorder: Recorder, pool: Pool, device: str) -> None:
        self._tasks = {task.id: task for task in tasks}
        self._recorder, self._pool, self._device = recorder, pool, device
        self._desks: dict[str, Desk] = {}
        self._lock = threading.Lock()

    def list_tasks(self) -> list[dict[str, str]]:
        """As :meth:`ToolBackend.list_tasks`."""
        return [_summary(task) for task in self._tasks.values()]

    def show_task(self, task: str) -> Answer:
        """As :meth:`ToolBackend.show_task`."""
        desk = self._desk(task)
        if isinstance(desk, str):
            return {"error": desk}
        return desk.show() | {"prompt": full_prompt(self._device)(desk.task)}

    def submit(self, task: str, source: str) -> Answer:
        """As :meth:`ToolBackend.submit`."""
        desk = self._desk(task)
        return {"error": desk} if isinstance(desk, str) else desk.submit(source)

    def profile(self, task: str, source: str) -> Answer:
        """As :meth:`ToolBackend.profile`."""
        desk = self._desk(task)
        return {"error": desk} if isinstance(desk, str) else desk.profile(source)

    def best(self, task: str) -> Answer:
        """As :meth:`ToolBackend.best`."""
        desk = self._desk(task)
        return {"error": desk} if isinstance(desk, str) else desk.best()

    def _desk(self, name: str) -> Desk | str:
        """The desk of a task, or why there is none."""
        if name not in self._tasks:
            return str(UnknownName("task", name[:200], self._tasks).message)
        with self._lock:
            if name not in self._desks:
                self._desks[name] = Desk(self._tasks[name], self._recorder, self._pool)
            return self._desks[name]


class ServiceTasks:
    """The sessions of a service, one for each task.

    Args:
        url: The address of the service.
        token: The token; None if the service needs none. It needs no full records.
        submissions: The submissions of a session.
    """

    def __init__(self, url: str, token: str | None, submissions: int) -> None:
        self._client, self._submissions = Client(url, token, patience=60), submissions
        self._sessions: dict[str, RemoteSession] = {}
        self._best: dict[str, tuple[float, float, str]] = {}
        """Reward, speedup and source of the best submission of each task."""
        self._lock = threading.Lock()

    def list_tasks(self) -> list[dict[str, str]]:
        """As :meth:`ToolBackend.list_tasks`."""
        return [_summary(get_task(name)) for name in self._client.tasks()]

    def show_task(self, task: str) -> Answer:
        """As :meth:`ToolBackend.show_task`."""
        try:
            info = self._session(task).info
        except ServiceError as error:
            return {"error": str(error)}
        return {"error": "", "task": task, "prompt": info.prompt, "submissions": info.max_turns}

    def submit(self, task: str, source: str) -> Answer:
        """As :meth:`ToolBackend.submit`."""
        problem = source_problem(source)
        if problem:
            return {"error": problem}
        try:
            step = self._session(task).submit(source)
        except ServiceError as error:
            return {"error": str(error)}
        known = self._best.get(task)
        if step.outcome == "passed" and (known is None or (step.reward or 0.0) > known[0]):
            self._best[task] = step.reward or 0.0, step.best_speedup, source
        return {
            "error": "",
            "submission": step.turn,
            "outcome": step.outcome,
            "passed": step.outcome == "passed",
            "reward": step.reward,
            "feedback": step.feedback,
            "profile": step.profile,
            "left": self._submissions - step.turn,
            "best_speedup": step.best_speedup,
        }

    def profile(self, task: str, source: str) -> Answer:
        """As :meth:`ToolBackend.profile`; it costs a submission."""
        answer = self.submit(task, source)
        kept = ("error", "submission", "outcome", "profile", "left")
        return {key: answer[key] for key in kept if key in answer}

    def best(self, task: str) -> Answer:
        """As :meth:`ToolBackend.best`, of the submissions through this connection."""
        _, speedup, source = self._best.get(task, (0.0, 0.0, ""))
        return {"error": "", "source": source, "best_speedup": speedup}

    def _session(self, task: str) -> RemoteSession:
        with self._lock:
            if task not in self._sessions:
                begun = self._client.session(task, max_turns=self._submissions)
                self._sessions[task] = begun
            return self._sessions[task]


class WorkspaceTask:
    """The judge behind the socket of a workspace. It knows one task.

    Args:
        folder: The workspace.

    Raises:
        WorkspaceError: The folder is no workspace.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = read_settings(folder).task

    def list_tasks(self) -> list[dict[str, str]]:
        """As :meth:`ToolBackend.list_tasks`."""
        return [_summary(get_task(self._name))]

    def show_task(self, task: str) -> Answer:
        """As :meth:`ToolBackend.show_task`; the prompt is in the file `TASK.md`."""
        answer = self._ask(task, {"do": "show"})
        return answer if answer["error"] else answer | {"prompt": "Read the file TASK.md."}

    def submit(self, task: str, source: str) -> Answer:
        """As :meth:`ToolBackend.submit`."""
        return self._ask(task, {"do": "submit", "source": source})

    def profile(self, task: str, source: str) -> Answer:
        """As :meth:`ToolBackend.profile`."""
        return self._ask(task, {"do": "profile", "source": source})

    def best(self, task: str) -> Answer:
        """As :meth:`ToolBackend.best`."""
        return self._ask(task, {"do": "best"})

    def _ask(self, task: str, request: dict[str, str]) -> Answer:
        if task != self._name:
            return {"error": f"found task {task[:200]!r}, expected {self._name!r}"}
        place = os.open(self._folder, os.O_PATH | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(f"/proc/self/fd/{place}/{SOCKET}")
                connection.sendall(json.dumps(request).encode() + b"\n")
                with connection.makefile("rb") as stream:
                    line = stream.readline()
            return json.loads(line)
        except (OSError, ValueError) as error:
            return {"error": f"the judge of the workspace does not answer: {error}"}
        finally:
            os.close(place)


def _summary(task: Task) -> dict[str, str]:
    return {"task": task.id, "language": task.written_in, "summary": task.problem.summary}
