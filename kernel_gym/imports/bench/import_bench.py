"""The bench of an import: confined workers for code of a suite, and an evaluator for admission."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from kernel_gym.devices import backend_of
from kernel_gym.devices.base import NotOfferedError
from kernel_gym.imports.bench.opened import OpenedDevice
from kernel_gym.imports.manifest import DeviceVerdict
from kernel_gym.imports.readers.base import UnsupportedTask
from kernel_gym.inert import inert_line
from kernel_gym.sandbox.spawn import Child
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.task import Task

if TYPE_CHECKING:
    from kernel_gym.evaluator import Evaluator
    from kernel_gym.imports.bench.stating import TaskStatement
    from kernel_gym.imports.recorded.stated import StatedWorkload

TIMEOUT = 120.0
"""Host seconds for a program on the files of one task: work and idle time, without waits for a
processor. It ends earlier by its own clock."""


class ImportBench:
    """Runs programs on one device and admits tasks there.

    Args:
        device: The device's name, such as `sim:gfx942` or `cuda:0`.
        timeout: Seconds for each program.
        compilers: How many compilers may work at a time for one reference on a GPU.
    """

    def __init__(self, device: str, timeout: float = TIMEOUT, compilers: int = 1) -> None:
        self.device = device
        self._timeout = timeout
        self._opened = OpenedDevice(device, compilers)
        self._statements: dict[str, TaskStatement] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def open(self) -> None:
        """Opens a device that has a process of its own, so that an error comes before any task.

        Raises:
            InfraError: It cannot be used.
        """
        if not backend_of(self.device).threads:
            self._opened.open()

    def admit(self, task: Task) -> DeviceVerdict:
        """Runs the controls of the admission on a task."""
        from kernel_gym.imports.bench.recorded import admit_recorded
        from kernel_gym.imports.bench.traced import admit_traced
        from kernel_gym.imports.traced.problem import TracedProblem

        if isinstance(task.problem, TracedProblem):
            return admit_traced(task, self._opened)
        statement = self._statements.get(task.id)
        flags = statement.flags if statement else {}
        return admit_recorded(task, self.evaluator, flags, statement.notes if statement else ())

    def state(
        self, problem: Problem, mode: Mode, recorded: Sequence[Mapping[str, int]]
    ) -> list[StatedWorkload]:
        """States the workloads of recorded calls; see `kernel_gym.imports.bench.stating`."""
        from kernel_gym.imports.bench.stating import state_workloads

        device = self.evaluator.device
        statement = state_workloads(device, problem, mode, recorded)  # type: ignore[arg-type]
        self._statements[problem.name] = statement
        return statement.stated

    def trace(
        self,
        files: Mapping[str, str],
        target: str,
        inputs: str,
        init: str | None,
        entry: str,
        points: Sequence[Mapping[str, int]] = (),
        called: str = "",
    ) -> dict[str, object]:
        """Traces a module at many sizes.

        Raises:
            UnsupportedTask: It cannot become a task.
        """
        from kernel_gym.imports.authoring.request import RequestError, TracingRequest
        from kernel_gym.imports.authoring.tracer import CodeError
        from kernel_gym.imports.authoring.write import trace_problem

        try:
            request = TracingRequest(files, target, inputs, init, points=points, called=called)
            text = trace_problem(request, entry, "an imported suite")
        except (CodeError, RequestError, SyntaxError) as error:
            raise UnsupportedTask(str(error)) from None
        return {"text": text.problem, "adapter": text.adapter, "notes": list(text.notes)}

    @property
    def evaluator(self) -> Evaluator:
        """Evaluates on the device; opened on first use."""
        return self._opened.evaluator

    def run(
        self, program: str, files: Mapping[str, bytes], options: Mapping[str, object]
    ) -> dict[str, object]:
        """Runs a program of `kernel_gym.imports.upstream` on files of a suite.

        Raises:
            UnsupportedTask: The program ended without an answer.
            InfraError: The machine gave it too little of its processors.
        """
        from kernel_gym.devices.meter import Meter
        from kernel_gym.sandbox.channel import ChannelClosed, ChannelError, ChannelTimeout

        header = {"program": program, "files": list(files), "options": dict(options)}
        with self._upstream() as child:
            try:
                child.channel.send(header, *files.values())
                meter = Meter(child.pid, None, self._timeout, None)
                answer = child.channel.recv(meter.patience).header
            except ChannelTimeout:
                raise UnsupportedTask(f"slow: not done within {self._timeout:g} s") from None
            except ChannelClosed:
                raise UnsupportedTask("crash: it ended the process") from None
            except ChannelError as error:
                raise UnsupportedTask(f"broken: {error}") from None
        if "error" in answer:
            raise UnsupportedTask(f"it does not run: {inert_line(answer['error'], 240)}")
        given = answer.get("answer")
        if not isinstance(given, dict):
            raise UnsupportedTask("broken: its answer is no object")
        return given

    @contextlib.contextmanager
    def _upstream(self) -> Iterator[Child]:
        """Starts a confined process with the device for a program on files of a suite."""
        output = os.memfd_create("kernel-gym-output")
        try:
            with self.evaluator.device.upstream(output, self._timeout) as child:
                yield child
        except NotOfferedError as error:
            raise UnsupportedTask(str(error)) from None
        finally:
            os.close(output)
