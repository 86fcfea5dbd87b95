"""The worker's loop: load one candidate, call it as often as the judge asks.

Answers are data that the judge checks; a failure of the candidate is an answer with a kind and a
message. Nothing that this process says is believed without the device's own record of it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kernel_gym.sandbox import confine, failures
from kernel_gym.sandbox.channel import Channel
from kernel_gym.worker.sim.function_mode import GuardlessMode
from kernel_gym.worker.sim.tensor import DeviceMode, DeviceTensor, Memory, describe

Candidate = Callable[..., Any]


def main(fds: list[int], options: dict[str, Any]) -> None:
    """Serves the judge over the first descriptor; the second leads to the device."""
    torch.set_num_threads(1)
    confine.forbid_inspection()
    judge = Channel(socket.socket(fileno=fds[0]), buffers=2)
    session = _SimSession(Channel(socket.socket(fileno=fds[1])), options["arch"])
    judge.send({"confinement": options["confinement"]})
    while True:
        message = judge.recv()
        judge.send(session.answer(message.header, message.buffers))


class _SimSession:
    """One candidate on the simulated device."""

    def __init__(self, device: Channel, arch: str) -> None:
        from kernel_gym.devices.sim import memory as sim_memory
        from kernel_gym.worker.sim import cuda_facade, triton_driver
        from kernel_gym.worker.sim.runtime import SimRuntime

        sim_memory.reserve_range()
        self.runtime = SimRuntime(device, arch)
        triton_driver.install(self.runtime)
        cuda_facade.install(self.runtime)
        self.candidate: Candidate | None = None

    def answer(self, header: dict[str, Any], buffers: Sequence[bytes]) -> dict[str, Any]:
        """Does what the judge asks; a failure becomes `{"error": {...}}`."""
        try:
            if header["do"] == "load":
                with GuardlessMode(self.runtime), DeviceMode(self.runtime):
                    self.candidate = _load(header, buffers, self.runtime)
                return {}
            return {"outputs": self._call(header["args"])}
        except BaseException as error:
            return {"error": failures.describe(error)}

    def _call(self, args: list[dict[str, Any]]) -> list[dict[str, Any]]:
        assert self.candidate is not None
        values = [self._argument(a) for a in args]
        with GuardlessMode(self.runtime), DeviceMode(self.runtime):
            result = self.candidate(*values)
        outputs = result if isinstance(result, tuple | list) else (result,)
        self._last = outputs  # the judge reads them before it asks again
        return [_describe_output(o) for o in outputs]

    def _argument(self, arg: dict[str, Any]) -> Any:
        if "value" in arg:
            return arg["value"]
        dtype = getattr(torch, arg["dtype"])
        meta = torch.empty_strided(arg["shape"], arg["strides"], dtype=dtype, device="meta")
        size = meta.untyped_storage().nbytes()
        return DeviceTensor(meta, Memory(self.runtime, arg["address"], size, owned=False))


def _describe_output(output: Any) -> dict[str, Any]:
    if type(output) is DeviceTensor:
        return describe(output)
    if isinstance(output, torch.Tensor):
        return {"wrong": f"a {output.dtype} tensor on {output.device}"}
    return {"wrong": f"a {type(output).__name__}"}


def _load(header: dict[str, Any], buffers: Sequence[bytes], runtime: Any) -> Candidate:
    if header["language"] == "hip":
        from kernel_gym.worker.hip import sim as hip

        return hip.load(header, buffers, runtime)
    from kernel_gym.worker import triton_module

    return triton_module.load(header["source"], header["entry"])
