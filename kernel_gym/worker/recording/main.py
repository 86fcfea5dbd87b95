"""The main loop of a recorder: loads one candidate and records its calls. It has no device.

Its answers are plans, which the judge parses and checks. It knows shapes and types of inputs, and
no values.
"""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import torch

from kernel_gym.plans.types import BufferRole, BufferView, LaunchPlan, WrongOutput
from kernel_gym.plans.write import write_plan
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import RequestDispatcher, decode
from kernel_gym.sandbox import confine
from kernel_gym.sandbox.channel import Channel
from kernel_gym.worker.recording import cubin, hsaco
from kernel_gym.worker.recording.properties import host_properties
from kernel_gym.worker.recording.runtime import RecordingRuntime
from kernel_gym.worker.sim.main import SimWorker
from kernel_gym.worker.sim.runtime import DeviceError
from kernel_gym.worker.sim.torch_owner import describe


def main(fds: list[int], options: dict[str, Any]) -> None:
    """Serves the judge over the first descriptor."""
    torch.set_num_threads(1)
    confine.forbid_inspection()
    judge = Channel(socket.socket(fileno=fds[0]), buffers=2)
    session = RecordingWorker(judge, options["arch"], options["memory"], options.get("reported"))
    judge.send({"confinement": options["confinement"]})
    while True:
        message = judge.recv()
        session.pieces = ()
        answer = session.answer(message.header, message.buffers)
        judge.send(answer, *session.pieces)


class RecordingWorker(SimWorker):
    """One candidate without a device.

    Args:
        judge: The pipe to the judge, for plans that are to be timed.
        arch: The architecture that it compiles for.
        memory: Bytes of memory of the device.
        reported: What a real GPU reports; None for a simulated GPU.
    """

    runtime: RecordingRuntime

    def __init__(
        self, judge: Channel, arch: str, memory: int, reported: dict[str, Any] | None = None
    ) -> None:
        if reported is None:
            super().__init__(RecordingRuntime(arch, memory, self._measure))
        else:
            gpu = SimpleNamespace(**reported)
            super().__init__(RecordingRuntime(arch, memory, self._measure, host_properties(gpu)))
            if gpu.hip is None:
                cubin.install(self.runtime, gpu)
            else:
                hsaco.install()
        self.pieces: tuple[bytes, ...] = ()
        """Code objects and constants, which follow the JSON of the answer."""
        self._judge = judge

    @property
    def requests(self) -> RequestDispatcher:
        """The requests that the judge may send."""
        return REQUESTS

    def record(self, args: messages.ArenaArguments, outputs: list[int]) -> dict[str, Any]:
        """Calls the candidate once and returns its plan."""
        assert self.candidate is not None
        self._last = None  # frees what the last call has returned
        self.runtime.begin()
        values = [self._place(one, at in outputs) for at, one in enumerate(args)]
        result = self.candidate(*values)
        returned = result if isinstance(result, tuple | list) else (result,)
        self._last = returned
        self.runtime.free_released()
        plan = self.runtime.recorder.plan(tuple(map(self._output, returned)))
        header, *pieces = write_plan(plan)
        self.pieces = tuple(pieces)
        return {"plan": header, "refused": self.runtime.refused}

    def _place(self, arg: messages.Scalar | messages.ArenaTensor, is_output: bool) -> Any:
        if isinstance(arg, messages.Scalar):
            return arg.value
        role = BufferRole.OUTPUT if is_output else BufferRole.INPUT
        address = self.runtime.recorder.argument(arg.size, role)
        self.runtime.adopt(address + arg.offset * arg.dtype.itemsize)
        return torch.empty_strided(arg.shape, arg.strides, dtype=arg.dtype, device="cuda")

    def _output(self, value: Any) -> BufferView | WrongOutput:
        if type(value) is torch.Tensor and value.is_cuda:  # a subclass could answer with calls
            return self.runtime.recorder.view(describe(value))
        if isinstance(value, torch.Tensor):
            return WrongOutput(f"a {value.dtype} tensor on {value.device}")
        return WrongOutput(f"a {type(value).__name__}")

    def _measure(self, plan: LaunchPlan, first: int) -> float:
        """Asks the judge for the seconds of the steps from a number on."""
        header, *pieces = write_plan(plan)
        self._judge.send({"measure": header, "first": first}, *pieces)
        told = decode(messages.TellSeconds, self._judge.recv().header)
        if told.error:
            raise DeviceError(told.error)
        return told.seconds


REQUESTS = RequestDispatcher(
    "recorder",
    {
        messages.LoadOnSimulator: SimWorker.load,
        messages.RecordCall: RecordingWorker.record,
    },
)
"""The requests to a recorder."""
