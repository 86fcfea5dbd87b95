"""The main loop of a worker on a simulated GPU: load one candidate, call it when the judge asks.

Answers are data that the judge checks. A failure of the candidate is an answer with a kind and a
message. The judge believes nothing from this process without the device's own record of it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import RequestDispatcher
from kernel_gym.sandbox import confine, failures
from kernel_gym.sandbox.channel import Channel
from kernel_gym.worker.sim.runtime import SimRuntime
from kernel_gym.worker.sim.torch_owner import ask, describe

Candidate = Callable[..., Any]


def main(fds: list[int], options: dict[str, Any]) -> None:
    """Serves the judge over the first descriptor.

    The second one leads to the device, and the third one to the file for compiled kernels.
    """
    torch.set_num_threads(1)
    confine.forbid_inspection()
    judge = Channel(socket.socket(fileno=fds[0]), buffers=2)
    device = Channel(socket.socket(fileno=fds[1]))
    runtime = SimRuntime(device, options["arch"])
    session = SimWorker(runtime, True, fds[2])
    judge.send({"confinement": options["confinement"]})
    while True:
        message = judge.recv()
        judge.send(session.answer(message.header, message.buffers))


class SimWorker:
    """One candidate on a simulated GPU.

    Args:
        runtime: The way to the simulated GPU.
        operators: Whether operators of PyTorch are sent to the device, which decides on them.
        kernels: A file for compiled kernels.
    """

    def __init__(
        self, runtime: SimRuntime, operators: bool = False, kernels: int | None = None
    ) -> None:
        from kernel_gym.devices.sim import memory as sim_memory
        from kernel_gym.worker.sim import compiled, cuda_facade, triton_driver

        sim_memory.reserve_range()
        self.runtime = runtime
        ask(self.runtime)
        triton_driver.install(self.runtime)
        cuda_facade.install(self.runtime)
        if operators:
            from kernel_gym.worker.sim.operators import Forwarding

            torch.autograd.set_multithreading_enabled(False)
            Forwarding(self.runtime).__enter__()
        self.candidate: Candidate | None = None
        self._last: Any = None
        self._kernels = None if kernels is None else compiled.install(kernels)

    @property
    def requests(self) -> RequestDispatcher:
        """The requests that the judge may send."""
        return REQUESTS

    def answer(self, header: dict[str, Any], buffers: Sequence[bytes]) -> dict[str, Any]:
        """Answers a request of the judge; a failure becomes `{"error": {...}}`."""
        try:
            return self.requests.answer(self, header, buffers)
        except BaseException as error:  # a candidate may raise anything, SystemExit included
            return {"error": failures.describe(error)}

    def load(
        self,
        language: str,
        entry: str,
        source: str,
        outputs: Sequence[int],
        assembler: bytes,
        library: bytes,
    ) -> dict[str, Any]:
        """Builds and loads the candidate."""
        if self._kernels is not None:
            self._kernels.read()
        if language == "hip":
            from kernel_gym.worker.hip import sim as hip

            self.candidate = hip.load(entry, outputs, assembler, library, self.runtime)
        else:
            from kernel_gym.worker import triton_module

            self.candidate = triton_module.load(source, entry)
        return {}

    def call(self, args: messages.DeviceArguments) -> dict[str, Any]:
        """Calls the candidate once and describes what it returns."""
        assert self.candidate is not None
        values = [self._argument(a) for a in args]
        result = self.candidate(*values)
        outputs = result if isinstance(result, tuple | list) else (result,)
        self._last = outputs  # keeps their memory until the judge has read it
        return {"outputs": [_describe_output(o) for o in outputs]}

    def _argument(self, arg: Any) -> Any:
        if isinstance(arg, messages.Scalar):
            return arg.value
        self.runtime.adopt(arg.address)
        return torch.empty_strided(arg.shape, arg.strides, dtype=arg.dtype, device="cuda")


REQUESTS = RequestDispatcher(
    "worker",
    {
        messages.LoadOnSimulator: SimWorker.load,
        messages.CallOnSimulator: SimWorker.call,
    },
)
"""The requests to a worker with a simulated GPU."""


def _describe_output(output: Any) -> dict[str, Any]:
    if type(output) is torch.Tensor and output.is_cuda:  # a subclass could answer with calls
        return describe(output).to_json()
    if isinstance(output, torch.Tensor):
        return {"wrong": f"a {output.dtype} tensor on {output.device}"}
    return {"wrong": f"a {type(output).__name__}"}
