"""Records calls before they are judged, while the simulated GPU executes those before them.

A thread asks the recorder, in the order in which the judge would ask it. The judge takes results in
that order, so a failure counts where it would have happened. Nothing else may ask the recorder
meanwhile. Host code that tunes itself asks for times: then the thread waits until the judge comes
to that call, and the judge executes the plan.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from queue import SimpleQueue

from kernel_gym.devices.base import Failed, FailureKind
from kernel_gym.devices.looking_ahead import ExpectedCall
from kernel_gym.devices.plan_recordings import PlannedCall, PlanRecordings, TimeSteps
from kernel_gym.plans.types import LaunchPlan
from kernel_gym.tasks.problem import Value

_ABANDONED = Failed(FailureKind.RUNTIME, "the evaluation has ended")


@dataclass(frozen=True)
class _Question:
    """Asks the judge for the seconds of a plan from a step on."""

    plan: LaunchPlan
    first: int


@dataclass(frozen=True)
class _Done:
    """The result of a job, or what it has raised."""

    result: PlannedCall | Failed | None = None
    raised: BaseException | None = None


@dataclass
class _Job:
    """One call that will be recorded, or repeated if it has a seed for that."""

    call: ExpectedCall
    stopped: threading.Event
    key: str = ""
    messages: SimpleQueue[_Question | _Done] = field(default_factory=SimpleQueue)
    answers: SimpleQueue[float | Failed] = field(default_factory=SimpleQueue)

    def time_steps(self, plan: LaunchPlan, first: int) -> float | Failed:
        """Has the judge time a plan."""
        if self.stopped.is_set():
            return _ABANDONED
        self.messages.put(_Question(plan, first))
        return self.answers.get()


class RecordingsAhead:
    """Records the calls of an evaluation on a thread.

    Args:
        recordings: Asks the recorder. This object alone uses it.
        calls: The calls, in the order of the judge.
    """

    def __init__(self, recordings: PlanRecordings, calls: Iterable[ExpectedCall]) -> None:
        self._recordings = recordings
        self._stopped = threading.Event()
        self._all = tuple(_Job(call, self._stopped) for call in calls)
        self._jobs = deque(self._all)
        """Those of which the judge has not taken the result."""
        self._known: dict[str, PlannedCall] = {}
        self._thread = threading.Thread(target=self._run, name="recordings", daemon=True)
        self._thread.start()

    def record(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int], time_steps: TimeSteps
    ) -> PlannedCall | Failed:
        """Returns the plan of a call as `PlanRecordings.record` does, mostly without a wait."""
        key = self._recordings.key(inputs, dims)
        while key not in self._known:
            if not self._jobs:
                self._thread.join()
                return self._recordings.record(inputs, dims, time_steps)
            job = self._jobs.popleft()
            result = self._result(job, time_steps)
            if job.key == key and not isinstance(result, PlannedCall):
                assert result is not None
                return result
        return self._known[key]

    def repeat(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        time_steps: TimeSteps,
        seed: int,
    ) -> Failed | None:
        """Records a call again and again, as `PlanRecordings.repeat` does."""
        while self._jobs:
            job = self._jobs.popleft()
            result = self._result(job, time_steps)
            if job.call.repeats == seed:
                return result if isinstance(result, Failed) else None
        self._thread.join()
        return self._recordings.repeat(inputs, dims, time_steps, seed)

    def stop(self) -> None:
        """Leaves out what has not begun. The recorder must not answer any more."""
        self._stopped.set()
        for job in self._all:
            job.answers.put(_ABANDONED)
        self._thread.join()

    def _result(self, job: _Job, time_steps: TimeSteps) -> PlannedCall | Failed | None:
        """Waits for a job and answers its questions."""
        while isinstance(message := job.messages.get(), _Question):
            job.answers.put(time_steps(message.plan, message.first))
        if message.raised is not None:
            raise message.raised
        if isinstance(message.result, PlannedCall):
            self._known[job.key] = message.result
        return message.result

    def _run(self) -> None:
        for job in self._all:
            try:
                done = _Done(_ABANDONED if self._stopped.is_set() else self._do(job))
            except BaseException as error:  # raised again where the judge takes the result
                done = _Done(raised=error)
            job.messages.put(done)

    def _do(self, job: _Job) -> PlannedCall | Failed | None:
        inputs, dims, seed = job.call.inputs(), job.call.dims, job.call.repeats
        job.key = self._recordings.key(inputs, dims)
        if seed is None:
            return self._recordings.record(inputs, dims, job.time_steps)
        return self._recordings.repeat(inputs, dims, job.time_steps, seed)
