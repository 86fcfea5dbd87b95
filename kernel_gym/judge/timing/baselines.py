"""Times of the baselines: a trusted kernel in a resident worker, or PyTorch by the model."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence

from kernel_gym.devices.base import Call, Device, Failed, InfraError, Session, SketchedCall
from kernel_gym.judge.timing.torch_model import reference_seconds
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload


class BaselineTimes:
    """Seconds by task and workload, shared by all evaluators of a process. Thread-safe."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str, str], float] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str, str]) -> float | None:
        """The cached time."""
        with self._lock:
            return self._seconds.get(key)

    def put(self, key: tuple[str, str, str], seconds: float) -> None:
        """Keeps a time."""
        with self._lock:
            self._seconds[key] = seconds


class Baseline:
    """Runs the baseline of one task at a time; the worker stays for the next workload."""

    def __init__(self, device: Device, times: BaselineTimes) -> None:
        self._device = device
        self._times = times
        self._task_id: str | None = None
        self._session: Session | None = None

    def seconds(self, task: Task, workload: Workload) -> float:
        """Time of the task's baseline on a workload.

        The data seed comes from the workload, so that the time does not depend on who asks.

        Raises:
            InfraError: the baseline fails: the task or the device is broken, not the candidate.
        """
        key = (self._device.name, task.id, workload.key)
        found = self._times.get(key)
        if found is None:
            found = self._run(task, workload)
            self._times.put(key, found)
        return found

    def session(self, task: Task, calls: Sequence[SketchedCall] = ()) -> Session:
        """The resident worker that holds a task's baseline, for timing beside a candidate.

        Args:
            task: whose baseline.
            calls: dimensions and inputs of calls that it should be compiled for now.

        Raises:
            InfraError: the baseline does not build: the task is broken, not the candidate.
        """
        session = self._open(task)
        failed = session.compile(calls) if calls else None
        if failed is not None:
            self.close()
            raise InfraError(f"the baseline of {task.id} does not compile: {failed.message}")
        return session

    def call(
        self, task: Task, inputs: Mapping[str, Value], dims: Mapping[str, int]
    ) -> Call | Failed:
        """Calls a task's baseline once.

        Raises:
            InfraError: it does not build, or the device is lost, and not by the candidate.
        """
        try:
            return self._open(task).call(inputs, dims)
        except InfraError as error:
            self.close()
            raise InfraError(str(error)) from error

    def close(self) -> None:
        """Ends the resident worker."""
        if self._session is not None:
            self._session.close()
        self._session, self._task_id = None, None

    def _run(self, task: Task, workload: Workload) -> float:
        seed = int.from_bytes(hashlib.sha256(workload.key.encode()).digest()[:6], "little")
        inputs = make_inputs(task.problem, workload, seed)
        if task.baseline_source is None:
            return reference_seconds(task.problem, inputs, self._device.spec)
        call = self.call(task, inputs, workload.dims)
        if isinstance(call, Call) and call.retuned:
            call = self.call(task, inputs, workload.dims)
        if isinstance(call, Failed):
            self.close()
            raise InfraError(f"the baseline of {task.id} failed on {workload}: {call.message}")
        return call.seconds

    def _open(self, task: Task) -> Session:
        if self._session is not None and self._task_id == task.id:
            return self._session
        self.close()
        session = self._device.open(task, trusted=True)
        try:
            if task.baseline_source is None:
                failed = session.load(task.reference_source, "torch")
            else:
                failed = session.load(task.baseline_source)
        except InfraError as error:
            session.close()
            raise InfraError(str(error)) from error  # a lost device is no doing of the candidate
        if failed is not None:
            session.close()
            raise InfraError(f"the baseline of {task.id} does not build: {failed.message}")
        self._session, self._task_id = session, task.id
        return session
