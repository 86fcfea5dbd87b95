"""Calls a suite's own code in a reference worker, before its task is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from kernel_gym.devices.base import (
    Audit,
    Call,
    Device,
    DeviceLostError,
    Exclusivity,
    Failed,
    FailureKind,
    InfraError,
    Session,
    WorkloadTooLargeError,
)
from kernel_gym.devices.meter import MachineOverloaded
from kernel_gym.devices.operators import COMPUTING
from kernel_gym.imports.readers.base import UnsupportedTask
from kernel_gym.imports.recorded.problem import EXACT, RecordedProblem
from kernel_gym.imports.recorded.stated import StatedWorkload
from kernel_gym.judge.reference import in_double
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload

MAX_LAUNCH_INSTRUCTIONS = 200_000_000
"""Wave instructions after which a launch on a simulated device is stopped: it is too slow. A
candidate has twice as many. A call on a GPU has the session's own limit."""


class CallFailed(Exception):
    """The suite's own code did not answer. The text says why.

    Attributes:
        slow: Whether it was stopped because it did too much.
    """

    def __init__(self, text: str, slow: bool = False) -> None:
        super().__init__(text)
        self.slow = slow


class BelievedSession(Session, Protocol):
    """A session that also tells the outputs of a suite's own code."""

    @property
    def device_seconds(self) -> float:
        """Processor seconds of a simulated GPU so far; 0 on others."""

    def call(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
        believed: bool = False,
    ) -> Call | Failed:
        """Calls the code once; with `believed`, the outputs are those that the worker states."""


class SuiteCode:
    """A session with the suite's own code. It is opened again when a call has ended it.

    Args:
        device: The device.
        problem: The problem, with templates and without workloads.
        mode: The mode of the task.
    """

    def __init__(self, device: Device, problem: RecordedProblem, mode: Mode) -> None:
        self._device, self._problem, self._mode = device, problem, mode
        self._session: BelievedSession | None = None
        self.operators: set[str] = set()
        """Operators of PyTorch that compute and that its calls have run."""

    def call(
        self,
        stated: StatedWorkload,
        seed: int,
        noop: bool = False,
        exact: bool = False,
        audit: Audit = Audit.OFF,
    ) -> tuple[tuple[torch.Tensor, ...], float]:
        """Makes one call and returns its outputs and the processor seconds of the device.

        Args:
            stated: The workload.
            seed: The seed of the data.
            noop: Kernels do nothing.
            exact: Inputs are in fp64.
            audit: Faults to look for, where the device can.

        Raises:
            CallFailed: The code did not answer.
            ImpossibleError: There are no fresh values for such sizes.
            InfraError: The device failed.
        """
        with self._device.held(Exclusivity.SHARED):
            inputs = self.inputs(stated, seed)
            dims = dict(stated.dims)
            if exact:
                inputs, dims = in_double(inputs), {**dims, EXACT: 1}
            try:
                call, seconds = self._called(inputs, dims, noop, audit)
            except InfraError as error:
                self.close()
                if isinstance(error, MachineOverloaded):
                    raise  # the machine's fault says nothing about the code
                facts = self._device.description
                whose = facts.device_per_session or isinstance(error, DeviceLostError)
                if whose or isinstance(error, WorkloadTooLargeError):
                    raise CallFailed(str(error)) from None
                raise
        if isinstance(call, Failed):
            self.close()
            raise CallFailed(call.message, call.kind is FailureKind.TIMEOUT)
        self.operators |= call.operators & COMPUTING
        wrong = next((o.problem for o in call.outputs if o.tensor is None), "")
        if wrong or call.modified_inputs:
            what = wrong or f"it changes {call.modified_inputs[0]} in some calls only"
            raise CallFailed(what)
        return tuple(o.tensor for o in call.outputs if o.tensor is not None), seconds

    def inputs(self, stated: StatedWorkload, seed: int) -> dict[str, Value]:
        """Draws the inputs of a workload, where the judge draws them."""
        own = self._problem
        problem = RecordedProblem(own.origin, own.templates, [stated], own.margin)
        workload = Workload(stated.dims, stated.split, stated.kind, "recorded")
        return make_inputs(problem, workload, seed, self._device.description.torch_device)

    def close(self) -> None:
        """Ends the session, if there is one."""
        if self._session is not None:
            self._session.close()
        self._session = None

    def _called(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int], noop: bool, audit: Audit
    ) -> tuple[Call | Failed, float]:
        session = self._open()
        began = session.device_seconds
        call = session.call(inputs, dims, noop, audit, believed=True)
        if isinstance(call, Call) and call.retuned:
            began = session.device_seconds
            call = session.call(inputs, dims, noop, audit, believed=True)
        return call, session.device_seconds - began

    def _open(self) -> BelievedSession:
        if self._session is not None:
            return self._session
        task = Task(self._problem, self._mode)
        device: Any = self._device
        session: BelievedSession = device.open(
            task, resident=True, launch_instructions=MAX_LAUNCH_INSTRUCTIONS
        )
        failed = session.load(self._problem.assembled(self._problem.implementation))
        if failed is not None:
            session.close()
            raise UnsupportedTask(f"it does not load: {failed.message}")
        self._session = session
        return session
