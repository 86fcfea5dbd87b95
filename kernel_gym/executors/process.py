"""A worker with an evaluator in its own process, for devices on which the judge computes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from multiprocessing.connection import Connection, wait

from kernel_gym.executors.base import EvaluationRequest
from kernel_gym.executors.supervised_worker import at_once
from kernel_gym.records import Evaluation
from kernel_gym.sandbox.confine import ONE_THREAD
from kernel_gym.storage.secret import RunSecret


class ProcessLost(RuntimeError):
    """The process of the judge ended before it answered."""


class ProcessWorker:
    """One evaluator in a new process, which has its own interpreter lock and GPU context.

    Args:
        device: A device name.
        secret: The secret of the run.
        named: The device that its records name; by default the same one.
    """

    def __init__(self, device: str, secret: RunSecret, named: str = "") -> None:
        context = multiprocessing.get_context("spawn")  # a GPU's state does not survive a fork
        self.ready, self.device, self._named = at_once(), device, named or device
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, device, secret), daemon=False)
        with _started_with(ONE_THREAD):
            self._process.start()  # arguments go through a pipe: no command line shows them
        theirs.close()

    def start(self, request: EvaluationRequest) -> Future[Evaluation]:
        """Starts one evaluation."""
        answer: Future[Evaluation] = Future()
        self._pipe.send(request)
        threading.Thread(target=self._wait, args=(answer,), daemon=True).start()
        return answer

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    def close(self) -> None:
        """Ends an idle process."""
        self._pipe.close()
        self._process.join(timeout=30)
        self.kill()

    def kill(self) -> None:
        """Kills the process. Its template process ends too."""
        self._process.kill()
        self._process.join()

    def _wait(self, answer: Future[Evaluation]) -> None:
        try:
            received = self._pipe.recv()
        except (EOFError, OSError) as error:
            answer.set_exception(ProcessLost(f"the evaluator's process ended: {error}"))
            return
        if isinstance(received, Evaluation):
            answer.set_result(received.model_copy(update={"device": self._named}))
        else:
            answer.set_exception(ProcessLost(" ".join(str(received).split())))


_starting = threading.Lock()
"""Held while a process starts, since it inherits environment variables that are changed."""


@contextlib.contextmanager
def _started_with(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets those environment variables that are not set, during the context."""
    with _starting:
        added = [name for name in variables if name not in os.environ]
        os.environ.update({name: variables[name] for name in added})
        try:
            yield
        finally:
            for name in added:
                del os.environ[name]


def _serve(pipe: Connection, device: str, secret: RunSecret) -> None:
    """Evaluates requests from the pipe until it closes."""
    end_with_parent()
    from kernel_gym.evaluator import Evaluator

    try:
        evaluator = Evaluator(device, secret=secret)
    except Exception as error:  # told to the parent
        pipe.send(_line(device, error))
        return
    with evaluator:
        while True:
            try:
                request: EvaluationRequest = pipe.recv()
            except (EOFError, KeyboardInterrupt):
                return
            answer: Evaluation | str
            try:
                answer = evaluator.evaluate(request.find(), request.source, request.seed)
            except Exception as error:  # told to the parent
                answer = _line(device, error)
            try:
                pipe.send(answer)
            except BrokenPipeError:  # the parent has ended
                return


def end_with_parent() -> None:
    """Lets this process of multiprocessing end when its parent has ended in any way.

    Otherwise the evaluators of a killed run would finish what they evaluate, one after the other on
    a GPU that another run needs.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _line(device: str, error: Exception) -> str:
    """An error of the judge as a line; a full GPU is named as such."""
    import torch

    if isinstance(error, torch.OutOfMemoryError):
        return f"{device} is full: give fewer --workers, or end what else runs on it"
    return f"{type(error).__name__}: {error}"
