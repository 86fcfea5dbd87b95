"""Work on the memory of a simulated GPU that is no launch: constants, copies, bytes of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim.memory import HOST_COPY_LATENCY, HOST_LINK
from kernel_gym.devices.sim.requests import RefusedError
from kernel_gym.protocol import device as messages
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.protocol.request import Answer

if TYPE_CHECKING:
    from kernel_gym.devices.sim.simulated_gpu import SimulatedGpu


def fill(gpu: SimulatedGpu, tensor: TensorOnDevice, value: float | int | bool) -> Answer:
    """Sets a tensor to a constant and charges the time of a fill kernel."""
    target = gpu.tensor(tensor, written=True)
    gpu.orders.on_both(lambda: target.fill_(value))
    gpu.used.launch_seconds += gpu.spec.launch_seconds
    gpu.seconds += gpu.spec.operator_seconds(target.nbytes, 0, target.dtype)
    return messages.Done()


def copy(gpu: SimulatedGpu, source: TensorOnDevice, target: TensorOnDevice) -> Answer:
    """Copies between two tensors of one dtype and charges the time of a copy kernel.

    Raises:
        RefusedError: The dtypes differ, or a tensor is not in allocated memory.
    """
    into, out_of = gpu.tensor(target, written=True), gpu.tensor(source)
    if into.dtype != out_of.dtype:
        raise RefusedError(f"a copy from {out_of.dtype} to {into.dtype} converts: that is work")
    gpu.orders.on_both(lambda: into.copy_(out_of))
    gpu.used.launch_seconds += gpu.spec.launch_seconds
    gpu.seconds += gpu.spec.operator_seconds(2 * into.nbytes, 0, into.dtype)
    return messages.Done()


def upload(gpu: SimulatedGpu, address: int, data: bytes) -> Answer:
    """Copies host bytes to device memory and charges a transfer over the host link.

    Raises:
        RefusedError: The target is not in one allocation.
    """
    if not data:
        return messages.Done()
    if not gpu.is_live(address, len(data)):
        raise RefusedError("an upload outside any allocation")
    gpu.seconds += HOST_COPY_LATENCY + len(data) / HOST_LINK
    target = sim_memory.device_tensor(address, [len(data)], [1], torch.uint8)
    content = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    gpu.orders.on_both(lambda: target.copy_(content))
    return messages.Done()
