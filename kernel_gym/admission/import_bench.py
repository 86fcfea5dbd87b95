"""The bench of an import: confined workers for code of a suite, and an evaluator for admission."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Self

import torch

from kernel_gym.admission.opened import OpenedDevice
from kernel_gym.devices.registry import backend_of, resolve
from kernel_gym.inert import inert_line
from kernel_gym.tasks.importers.manifest import DeviceVerdict
from kernel_gym.tasks.importers.reader import UnsupportedTask
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.task import Task

if TYPE_CHECKING:
    from kernel_gym.admission.stating import TaskStatement
    from kernel_gym.evaluator import Evaluator

TIMEOUT = 120.0
"""Seconds of the wall for a program on the files of one task. It ends earlier by its own clock."""
LAUNCH_LIMIT = 20.0
"""Seconds of one launch."""
MEMORY = 2 << 30
"""Bytes of device memory of a program."""


class ImportBench:
    """Runs programs on one device and admits tasks there.

    Args:
        device: The device's name, such as `sim:gfx942`.
        timeout: Seconds for each program.
        opened: The device, if several benches share it. Otherwise the bench opens its own.
    """

    def __init__(
        self, device: str, timeout: float = TIMEOUT, opened: OpenedDevice | None = None
    ) -> None:
        self.device = device
        self._timeout = timeout
        self._shared = opened is not None
        self._opened = opened or OpenedDevice(device)
        self._statements: dict[str, TaskStatement] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._shared:
            self._opened.close()

    def admit(self, task: Task) -> DeviceVerdict:
        """Runs the controls of the admission on a task."""
        from kernel_gym.admission.recorded import admit_recorded
        from kernel_gym.admission.traced import admit_traced
        from kernel_gym.tasks.traced.problem import TracedProblem

        if isinstance(task.problem, TracedProblem):
            return admit_traced(task, self._opened)
        statement = self._statements.get(task.id)
        flags = statement.flags if statement else {}
        return admit_recorded(task, self.evaluator, flags, statement.notes if statement else ())

    def state(
        self, problem: Problem, mode: Mode, recorded: Sequence[Mapping[str, int]]
    ) -> list[Any]:
        """States the workloads of recorded calls; see `kernel_gym.admission.stating`."""
        from kernel_gym.admission.stating import state_workloads

        device: Any = self.evaluator.device
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
    ) -> dict[str, Any]:
        """Traces a module at many sizes.

        Raises:
            UnsupportedTask: It cannot become a task.
        """
        from kernel_gym.authoring.request import RequestError, TracingRequest
        from kernel_gym.authoring.tracer import CodeError
        from kernel_gym.authoring.write import trace_problem

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
        self, program: str, files: Mapping[str, bytes], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Runs a program of `kernel_gym.worker.upstream` on files of a suite.

        Raises:
            UnsupportedTask: The device is no simulated one, or the program ended without an answer.
        """
        from kernel_gym.devices.sim import memory as sim_memory
        from kernel_gym.sandbox.channel import ChannelClosed, ChannelError, ChannelTimeout
        from kernel_gym.sandbox.confine import WorkerLimits
        from kernel_gym.sandbox.spawn import shared_template

        if not self.device.startswith("sim:"):
            raise UnsupportedTask("imported suites run on simulated devices only")
        device = {
            "arch": self.device.removeprefix("sim:"),
            "threads": os.cpu_count() or 1,
            "memory": MEMORY,
            "launch_limit": LAUNCH_LIMIT,
        }
        memory, output = sim_memory.create_file(), os.memfd_create("kernel-gym-output")
        limits = WorkerLimits(memory=6 << 30, cpu_seconds=int(self._timeout) * 8)
        child = shared_template().fork("upstream", [memory, output], device, limits)
        try:
            header = {"program": program, "files": list(files), "options": dict(options)}
            child.channel.send(header, *files.values())
            answer = child.channel.recv(self._timeout).header
        except ChannelTimeout:
            raise UnsupportedTask(f"slow: not done within {self._timeout:g} s") from None
        except ChannelClosed:
            raise UnsupportedTask("crash: it ended the process") from None
        except ChannelError as error:
            raise UnsupportedTask(f"broken: {error}") from None
        finally:
            child.close()
            os.close(memory)
            os.close(output)
        if "error" in answer:
            raise UnsupportedTask(f"it does not run: {inert_line(answer['error'], 240)}")
        given = answer.get("answer")
        if not isinstance(given, dict):
            raise UnsupportedTask("broken: its answer is no object")
        return given


@contextmanager
def import_benches(device: str, number: int) -> Iterator[list[ImportBench]]:
    """Opens benches for one device. Those of a GPU share it, since each opening takes memory there.

    Args:
        device: The device's name; `auto` is the best one here.
        number: How many tasks are imported at a time.

    Raises:
        UnknownDevice: There is no such device.
    """
    name = resolve(device)
    with ExitStack() as stack:
        shared = None
        if not backend_of(name).threads:
            shared = OpenedDevice(name, number)
            stack.callback(shared.close)
            torch.set_num_threads(max(1, (os.cpu_count() or 1) // number))
        yield [stack.enter_context(ImportBench(name, opened=shared)) for _ in range(number)]
