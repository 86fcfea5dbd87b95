"""The driver of a worker without a device: requests become steps of a plan.

The candidate's tensors, launches and HIP calls reach it as they reach the simulated device
(`kernel_gym.worker.sim.runtime`). What needs data is refused, with advice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch

from kernel_gym.plans.addresses import is_stand_in
from kernel_gym.plans.types import LaunchPlan
from kernel_gym.protocol import device as messages
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.protocol.request import Request
from kernel_gym.worker.recording.code import describe_kernel, kernel_names, variable_size
from kernel_gym.worker.recording.recorder import PlanRecorder, RecordedKernel, amd_code
from kernel_gym.worker.sim.runtime import DeviceAnswer, DeviceError, SimRuntime

MAX_REFUSED = 16
"""Most refused operators that are reported."""
_NO_DATA = (
    "reading device memory on the host is refused, since the launches of a call are recorded "
    "without data: choose sizes and grids by shapes, and keep the work in your kernel"
)


class PlanQuestions(Protocol):
    """Questions to the judge about the plan of a call so far. Each raises a `DeviceError`."""

    def seconds(self, plan: LaunchPlan, first: int) -> float:
        """Returns the seconds of the steps of a plan from a number on."""

    def values(self, plan: LaunchPlan) -> bytes:
        """Returns the elements of the only output of a plan."""

    def forms(self, plan: LaunchPlan) -> object:
        """Returns the form of the result of the last step, see `result_form`."""


class RecordingRuntime(SimRuntime):
    """Records what host code asks of the device.

    Args:
        arch: The architecture of the device that will execute the plans.
        capacity: Bytes of its memory.
        questions: Asks the judge, for host code that tunes itself or reads values.
        properties: What a real GPU reports; None for a simulated one.
    """

    def __init__(
        self,
        arch: str,
        capacity: int,
        questions: PlanQuestions,
        properties: Any = None,
    ) -> None:
        super().__init__(arch) if properties is None else super().__init__()
        self.properties = properties or self.properties
        self.recorder = PlanRecorder(arch, capacity)
        self.refused: list[str] = []
        self._questions = questions
        self._in_trial = False  # whether kernels are compared
        self._loaded: list[RecordedKernel] = []
        self._variables: dict[tuple[bytes, str], int] = {}

    def begin(self) -> None:
        """Begins a call."""
        self.free_released()
        self.recorder.begin()
        self.refused = []
        self._variables = {}

    def refuse(self, operator: str) -> None:
        """Notes that an operator was refused."""
        if len(self.refused) < MAX_REFUSED:
            self.refused.append(operator)

    def download(self, address: int, size: int) -> bytes:
        """Refuses to read device memory.

        Raises:
            DeviceError: Always.
        """
        self.refuse("copy from device to host")
        raise DeviceError(_NO_DATA)

    def clock(self) -> float:
        """Returns the seconds of the work of this call so far, which the judge measures."""
        return self._questions.seconds(self.recorder.plan(), 0) if self.recorder.length else 0.0

    def time_of(self, call: Callable[[], object]) -> float:
        """Returns the seconds of the work of a call, which leaves no trace in the plan."""
        with self.trial() as first:
            call()
            return self._questions.seconds(self.recorder.plan(), first)

    @contextlib.contextmanager
    def trial(self) -> Iterator[int]:
        """Permits work that leaves no trace in the plan; yields the number of its first step."""
        mark, outer = self.recorder.mark, self._in_trial
        self._in_trial = True
        try:
            yield mark[0]
        finally:
            self._in_trial = outer
            self.free_released()
            self.recorder.rewind(mark)

    def operator(
        self,
        name: str,
        overload: str,
        arguments: str,
        tensors: Sequence[TensorOnDevice],
        results: Sequence[TensorOnDevice],
        told: bool,
    ) -> None:
        """Records an operator of PyTorch, see `TorchOperatorStep`."""
        self.recorder.operator(name, overload, arguments, tensors, results, told)

    def forms(
        self, name: str, overload: str, arguments: str, tensors: Sequence[TensorOnDevice]
    ) -> object:
        """Asks for the form of an operator's result, which depends on values.

        Raises:
            DeviceError: The task does not permit the operator, it failed, or kernels are compared.
        """
        self._check_no_trial()
        mark = self.recorder.mark
        self.recorder.operator(name, overload, arguments, tensors, None, False)
        plan = self.recorder.plan()
        self.recorder.rewind(mark)
        return self._questions.forms(plan)

    def read(self, tensor: TensorOnDevice) -> torch.Tensor:
        """Reads the elements of a small tensor to the host, and records that.

        Raises:
            DeviceError: The task does not allow it, it is too large, or kernels are compared.
        """
        self.free_released()
        self._check_no_trial()
        shape = tensor.shape
        if 0 in shape:
            return torch.empty(shape, dtype=tensor.dtype)
        data = self._questions.values(self.recorder.plan((self.recorder.view(tensor),)))
        self.recorder.read(tensor, data)
        return torch.frombuffer(bytearray(data), dtype=tensor.dtype).reshape(shape)

    def _check_no_trial(self) -> None:
        if self._in_trial:
            raise DeviceError("no values are read in a trial of kernels: nothing of it may stay")

    def on_device(self, address: int) -> bool:
        """Whether an address is one of the device."""
        return is_stand_in(address)

    def _allocate(self, size: int) -> int:
        return self.recorder.allocate(size)

    def _free(self, address: int) -> None:
        self.recorder.free(address)

    def _ask(self, request: Request) -> DeviceAnswer:
        match request:
            case messages.LaunchKernel():
                self._launch(request)
            case messages.Fill(tensor, value):
                pattern = torch.empty(1, dtype=tensor.dtype).fill_(value).view(torch.uint8)
                self.recorder.fill(tensor, bytes(pattern.tolist()))
            case messages.Copy(source, target):
                self.recorder.copy(source, target)
            case messages.Upload(address, data):
                self.recorder.upload(address, data)
            case messages.LoadKernel(name, shared, code):
                return self._load(code, name, shared)
            case messages.KernelNames(code):
                return {"names": kernel_names(code)}
            case messages.FindVariable(name, code):
                return self._find_variable(code, name)
            case _:
                self.refuse(request.verb)
                raise DeviceError(_NO_DATA)
        return {}

    def _launch(self, request: messages.LaunchKernel) -> None:
        values, place = [], 0
        for size in request.sizes:
            values.append(request.data[place : place + size])
            place += size
        kernel = self._loaded[request.kernel]
        self.recorder.launch(kernel, request.grid, request.block, values, request.lds)

    def _load(self, code: bytes, name: str | None, shared: int | None) -> DeviceAnswer:
        described = describe_kernel(code, name, shared)
        self._loaded.append(RecordedKernel(amd_code(code), described["name"], shared))
        return described | {"kernel": len(self._loaded) - 1}

    def _find_variable(self, code: bytes, name: str) -> DeviceAnswer:
        size = variable_size(code, name)
        if size is None:
            return {"address": 0, "size": 0}
        if (code, name) not in self._variables:
            self._variables[code, name] = self.recorder.variable(amd_code(code), name, size)
        return {"address": self._variables[code, name], "size": size}
