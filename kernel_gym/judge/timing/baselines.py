"""Times of baselines: a kernel runs in a resident worker, and PyTorch has modelled times."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence

from kernel_gym.devices.base import (
    BrokenTaskError,
    Call,
    Device,
    Failed,
    InfraError,
    Session,
    SketchedCall,
)
from kernel_gym.judge.timing.torch_model import reference_seconds
from kernel_gym.tasks.content import identity_of
from kernel_gym.tasks.problem import Problem, Value
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload


def tuned(problem: Problem, call: Call) -> bool:
    """Whether kernels were perhaps tuned in a call, so that the next one takes another time.

    The kernels of suites may be tuned again for each size with machine codes that are known. Tuning
    is in no launch plan.
    """
    return not call.plan and (call.retuned or (problem.recorded and len(call.codes) > 1))


def _is_ours(task: Task) -> bool:
    """Whether a baseline is the project's own code.

    The PyTorch of a claim was rewritten by us, and that of a traced problem was written by us as a
    list of operators.
    """
    if task.problem.claimed or task.problem.rewritten:
        return task.baseline_source is None
    return not task.problem.suite


def _stays(task: Task) -> bool:
    """Whether a worker with code that is not ours stays, without the time budget of a candidate."""
    return task.problem.recorded or (task.problem.claimed and not _is_ours(task))


def _baseline_of(task: Task) -> Hashable:
    """Tells a baseline from those of other tasks, which may have the same name."""
    return task.id, identity_of(task.problem), task.baseline_source


class BaselineTimes:
    """Seconds by task and workload, shared by all evaluators of a process. Thread-safe.

    Args:
        capacity: The most times that it keeps. Unseen workloads are new in each evaluation.
    """

    def __init__(self, capacity: int = 1 << 16) -> None:
        self._capacity = capacity
        self._seconds: OrderedDict[Hashable, float] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> float | None:
        """The cached time."""
        with self._lock:
            if key in self._seconds:
                self._seconds.move_to_end(key)
            return self._seconds.get(key)

    def put(self, key: Hashable, seconds: float) -> None:
        """Caches a time."""
        with self._lock:
            self._seconds[key] = seconds
            self._seconds.move_to_end(key)
            while len(self._seconds) > self._capacity:
                self._seconds.popitem(last=False)


class BaselineRunner:
    """Runs the baseline of one task at a time. Its worker stays for the next workload."""

    def __init__(self, device: Device, times: BaselineTimes) -> None:
        self._device = device
        self._times = times
        self._opened: Hashable = None
        self._session: Session | None = None

    def seconds(self, task: Task, workload: Workload) -> float:
        """Returns the time of a task's baseline on a workload, as the device reports it.

        The data seed depends on the workload alone, so that all evaluators get the same time.

        Raises:
            InfraError: The baseline failed. The task or the device is broken, not the candidate.
        """
        seed = int.from_bytes(hashlib.sha256(workload.key.encode()).digest()[:6], "little")
        return self.seconds_on(task, workload, seed, make_inputs(task.problem, workload, seed))

    def seconds_on(
        self,
        task: Task,
        workload: Workload,
        seed: int,
        inputs: Mapping[str, Value],
        samples: int = 0,
    ) -> float:
        """Returns the time of a task's baseline on given data.

        The work of a kernel may depend on values: lengths, ignored rows, a search that ends early.
        So a candidate is compared with its baseline on the same data.

        Args:
            task: The task.
            workload: The workload.
            seed: The seed of the data, which names them.
            inputs: The data.
            samples: The seed of the workgroups that a timing model samples, the candidate's.

        Raises:
            InfraError: The baseline failed. The task or the device is broken, not the candidate.
        """
        by_values = task.baseline_source is not None
        data = f"{workload.key} {seed} {samples}" if by_values else workload.key
        key = (self._device.description.name, _baseline_of(task), data)
        seconds = self._times.get(key)
        if seconds is None:
            seconds = self._run(task, workload, inputs, samples)
            self._times.put(key, seconds)
        return seconds

    def session(self, task: Task, calls: Sequence[SketchedCall] = ()) -> Session:
        """Returns the session of a task's baseline, to time it in turn with a candidate.

        Args:
            task: The task.
            calls: Dimensions and inputs of calls to compile for now.

        Raises:
            InfraError: The baseline does not build. The task is broken, not the candidate.
        """
        session = self._open(task)
        failed = session.compile(calls) if calls else None
        if failed is not None:
            self.close()
            raise BrokenTaskError(f"the baseline of {task.id} does not compile: {failed.message}")
        return session

    def call(
        self,
        task: Task,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        samples: int | None = None,
    ) -> Call | Failed:
        """Calls a task's baseline once, with the samples of the timing model from a seed.

        Raises:
            InfraError: It does not build, or the device is lost.
        """
        try:
            session = self._open(task)
            if samples is not None:
                session.sample_from(samples)
            return session.call(inputs, dims)
        except InfraError as error:
            self.close()
            raise InfraError(str(error)) from error

    def close(self) -> None:
        """Ends the resident worker."""
        if self._session is not None:
            self._session.close()
        self._session, self._opened = None, None

    def _run(
        self, task: Task, workload: Workload, inputs: Mapping[str, Value], samples: int
    ) -> float:
        if task.baseline_source is None:
            return reference_seconds(task.problem, inputs, self._device.description.spec)
        call = self.call(task, inputs, workload.dims, samples)
        if isinstance(call, Call) and tuned(task.problem, call):
            call = self.call(task, inputs, workload.dims, samples)
        if isinstance(call, Failed):
            self.close()
            raise BrokenTaskError(f"the baseline of {task.id} failed on {workload}: {call.message}")
        return call.seconds

    def _open(self, task: Task) -> Session:
        wanted = _baseline_of(task)
        if self._session is not None and self._opened == wanted:
            return self._session
        self.close()
        session = self._device.open(task, trusted=_is_ours(task), resident=_stays(task))
        try:
            if task.baseline_source is None:
                failed = session.load(task.reference_source, "torch")
            else:
                failed = session.load(task.problem.assembled(task.baseline_source))
        except InfraError as error:
            session.close()
            raise InfraError(str(error)) from error  # the candidate did not lose the device
        if failed is not None:
            session.close()
            raise BrokenTaskError(f"the baseline of {task.id} does not build: {failed.message}")
        self._session, self._opened = session, wanted
        return session
