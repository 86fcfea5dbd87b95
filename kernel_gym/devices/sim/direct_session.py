"""A session whose worker calls the candidate beside the simulated GPU: of imported tasks only.

Their host code uses operators of PyTorch and may need values, so that a call has no plan from
shapes. The worker sends launches and operators to the GPU while the call runs.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from kernel_gym.devices.base import Audit, Call, DeviceLostError, Failed, FailureKind, InfraError
from kernel_gym.devices.sim.compiled import KernelFile
from kernel_gym.devices.sim.session import (
    CALL_SECONDS,
    LOAD_SECONDS,
    DeviceFull,
    SimOptions,
    SimSession,
)
from kernel_gym.protocol import device as device_messages
from kernel_gym.protocol import worker as messages
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task


class DirectSession(SimSession):
    """One candidate of an imported task in a worker that has a pipe to the GPU.

    Args:
        task: What the source solves.
        options: How the session is opened.
        kernels: The file for compiled kernels. The session closes it.
    """

    def __init__(self, task: Task, options: SimOptions, kernels: KernelFile) -> None:
        self._kernels = kernels
        try:
            super().__init__(task, options)
        except InfraError:
            kernels.close()
            raise

    def _worker_role(self, pipe: socket.socket) -> tuple[str, list[int], dict[str, Any]]:
        descriptors = [pipe.fileno(), self._kernels.descriptor]
        return "worker", descriptors, {"arch": self._arch}

    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads a source, with the kernels that are known of it."""
        self._waits_by_compiler = "gluon" not in source  # Gluon names LDS and its waits itself
        self._kernels.fill(self._task.problem.unassembled(source), self._budget)
        language = language or self._task.language
        request = messages.LoadOnSimulator(language, self._task.entry, source)
        answer = self._worker.ask(request, LOAD_SECONDS)
        return answer if isinstance(answer, Failed) else None

    def call(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
        believed: bool = False,
    ) -> Call | Failed:
        """Calls the candidate once on fresh device copies of the inputs.

        With `believed`, the outputs are those that the worker states: of a suite's own code only,
        before its task is known.
        """
        if self._worker.dead:
            return self._worker.dead
        self._ask_device(device_messages.BeginCall(noop, str(audit), self._waits_by_compiler))
        try:
            args, buffers = self._place_inputs(inputs)
        except DeviceFull as error:
            return self._worker.fail(Failed(FailureKind.RUNTIME, str(error)))
        before = self._worker.host_seconds
        answer = self._worker.ask(messages.CallOnSimulator(args), CALL_SECONDS)
        dead = self._worker.dead
        stopped = dead is not None and dead.kind is FailureKind.TIMEOUT
        self._kernels.keep(self._worker.host_seconds - before, stopped)
        try:
            result = self._collect(answer, inputs, dims, buffers, believed)
            for address in buffers.values():
                self._ask_device(device_messages.Free(address))
        except DeviceLostError as error:
            return self._worker.lost_device(error)
        return result

    def close(self) -> None:
        """Ends the worker and the simulated GPU."""
        super().close()
        self._kernels.close()
