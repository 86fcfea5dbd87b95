"""The process of a simulated GPU, on the judge's side: it serves the judge.

A user's own program has a simulated GPU in its own process, and sends it what it asks of a driver.
"""

from __future__ import annotations

import contextlib
import socket

import torch

from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim import transfers
from kernel_gym.devices.sim.memory import DeviceMemoryError
from kernel_gym.devices.sim.plan_launcher import run_plan
from kernel_gym.devices.sim.requests import RefusedError
from kernel_gym.devices.sim.simulated_gpu import SimulatedGpu
from kernel_gym.inert import inert_text
from kernel_gym.protocol import device as messages
from kernel_gym.protocol.request import BadRequestError, RequestDispatcher, encode_answer
from kernel_gym.sandbox import confine
from kernel_gym.sandbox.channel import Channel, ChannelClosed, ChannelMessage
from kernel_gym.sim.engine.engine import AsmError

PROCESS_MEMORY = 5 << 29
"""Bytes of private memory of this process, which bounds what hostile texts can take. The device's
own memory is shared and does not count. The table of its allocated bytes reserves 1 GiB of this and
touches little of it."""

FOR_JUDGE = RequestDispatcher(
    "device",
    {
        messages.SeedSamples: SimulatedGpu.sample_from,
        messages.BeginCall: SimulatedGpu.begin,
        messages.EndCall: SimulatedGpu.end,
        messages.SwapOrders: SimulatedGpu.swap_orders,
        messages.AllocateForJudge: SimulatedGpu.allocate,
        messages.Free: SimulatedGpu.free,
        messages.Locate: SimulatedGpu.locate,
        messages.ReadFacts: SimulatedGpu.facts,
        messages.RunPlan: run_plan,
    },
)
"""The requests that the judge may send."""
FOR_PROGRAM = RequestDispatcher(
    "device",
    {
        messages.Allocate: SimulatedGpu.allocate_for_worker,
        messages.Free: SimulatedGpu.free_for_worker,
        messages.LoadKernel: SimulatedGpu.load,
        messages.KernelNames: SimulatedGpu.names,
        messages.FindVariable: SimulatedGpu.variable,
        messages.Fill: transfers.fill,
        messages.Copy: transfers.copy,
        messages.Upload: transfers.upload,
        messages.LaunchKernel: SimulatedGpu.launch,
    },
)
"""The requests of a user's own program to its simulated GPU."""


def main(fds: list[int], options: dict[str, object]) -> None:
    """Serves the judge (first descriptor), over shared memory (second), until it is gone."""
    torch.set_num_threads(1)
    judge = Channel(socket.socket(fileno=fds[0]), buffers=2)
    confine.limit_memory(PROCESS_MEMORY)
    confine.forbid_inspection()
    sim_memory.map_device(fds[1])
    gpu = SimulatedGpu(options)
    with contextlib.suppress(ChannelClosed):
        while True:
            message = judge.recv()
            judge.send(FOR_JUDGE.answer(gpu, message.header, message.buffers))


def answer_program(gpu: SimulatedGpu, message: ChannelMessage) -> dict[str, object]:
    """Answers any message of a program. Whatever is wrong becomes an error in the answer."""
    try:
        request = FOR_PROGRAM.decode(message.header, message.buffers)
        return FOR_PROGRAM.handle(gpu, request)
    except (BadRequestError, RefusedError, AsmError, DeviceMemoryError) as error:
        return _refused(str(error), type(error).__name__)
    except Exception as error:  # a malformed request must not end the program
        return _refused(f"a malformed request: {error}", "malformed")


def _refused(text: str, kind: str) -> dict[str, object]:
    return encode_answer(messages.RequestRefused(inert_text(text, 2000), kind))
