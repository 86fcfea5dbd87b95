"""An evaluator in a process of its own: where the judge itself needs the machine's time."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from multiprocessing.connection import Connection

from kernel_gym.executors.base import Request
from kernel_gym.records import Evaluation
from kernel_gym.sandbox.confine import ONE_THREAD
from kernel_gym.storage.secret import RunSecret


class ProcessLost(RuntimeError):
    """The judge's process ended before it answered."""


class ProcessWorker:
    """Holds one evaluator in a fresh process, which has its own interpreter lock and GPU context.

    Args:
        device: A device name.
        secret: Of the run.
    """

    def __init__(self, device: str, secret: RunSecret) -> None:
        context = multiprocessing.get_context("spawn")  # a GPU's state does not survive a fork
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, device, secret), daemon=False)
        with _started_with(ONE_THREAD):
            self._process.start()  # its arguments go through a pipe, no command line shows them
        theirs.close()

    def start(self, request: Request) -> Future[Evaluation]:
        """Begins one."""
        answer: Future[Evaluation] = Future()
        self._pipe.send((request.task, request.source, request.seed))
        threading.Thread(target=self._wait, args=(answer,), daemon=True).start()
        return answer

    def close(self) -> None:
        """Ends the process when it is idle."""
        self._pipe.close()
        self._process.join(timeout=30)
        self.kill()

    def kill(self) -> None:
        """Ends the process at once; its template ends with it."""
        self._process.kill()
        self._process.join()

    def _wait(self, answer: Future[Evaluation]) -> None:
        try:
            found = self._pipe.recv()
        except (EOFError, OSError) as error:
            answer.set_exception(ProcessLost(f"the evaluator's process ended: {error}"))
            return
        if isinstance(found, Evaluation):
            answer.set_result(found)
        else:
            answer.set_exception(ProcessLost(str(found)))


_starting = threading.Lock()
"""A process is started with the variables of this one, which are changed for as long."""


@contextlib.contextmanager
def _started_with(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets variables that are not set."""
    with _starting:
        added = [name for name in variables if name not in os.environ]
        os.environ.update({name: variables[name] for name in added})
        try:
            yield
        finally:
            for name in added:
                del os.environ[name]


def _serve(pipe: Connection, device: str, secret: RunSecret) -> None:
    """Evaluates what comes through the pipe until it closes."""
    from kernel_gym.evaluator import Evaluator
    from kernel_gym.tasks.registry import get_task

    with Evaluator(device, secret=secret) as evaluator:
        while True:
            try:
                task, source, seed = pipe.recv()
            except (EOFError, KeyboardInterrupt):
                return
            try:
                pipe.send(evaluator.evaluate(get_task(task), source, seed))
            except Exception as error:
                pipe.send(f"{type(error).__name__}: {error}")
