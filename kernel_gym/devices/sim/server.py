"""The process of a simulated GPU, on the judge's side: it serves two pipes.

The judge may ask for everything. The worker may allocate memory, upload data, load code and launch
it, as with the driver of a real GPU. It cannot read memory, counters or times.
"""

from __future__ import annotations

import selectors
import socket
from typing import Any

import torch

from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim import operators, transfers
from kernel_gym.devices.sim.memory import DeviceMemoryError
from kernel_gym.devices.sim.plan_launcher import run_plan
from kernel_gym.devices.sim.requests import RefusedError
from kernel_gym.devices.sim.simulated_gpu import SimulatedGpu
from kernel_gym.inert import inert_text
from kernel_gym.protocol import device as messages
from kernel_gym.protocol.request import BadRequestError, RequestDispatcher, encode_answer
from kernel_gym.sandbox import confine
from kernel_gym.sandbox.channel import Channel, ChannelError, ChannelMessage
from kernel_gym.sim.engine.engine import AsmError

MAX_REQUEST = 2 << 20
"""Bytes of the JSON of a request. Code and data travel beside it."""
WORKER_PATIENCE = 480.0
"""Wall seconds that a worker may take to send the rest of a message, or to read an answer. It only
guards the machine: the judge ends a worker much earlier that keeps this process waiting."""
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
FOR_WORKER = RequestDispatcher(
    "device",
    {
        messages.Allocate: SimulatedGpu.allocate_for_worker,
        messages.Free: SimulatedGpu.free_for_worker,
        messages.LoadKernel: SimulatedGpu.load,
        messages.KernelNames: SimulatedGpu.names,
        messages.FindVariable: SimulatedGpu.variable,
        messages.Fill: transfers.fill,
        messages.Copy: transfers.copy,
        messages.RunOperator: operators.answer_operator,
        messages.ReadValues: operators.answer_values,
        messages.NoteRefusal: SimulatedGpu.refuse,
        messages.ReadClock: SimulatedGpu.clock,
        messages.BeginTrial: SimulatedGpu.begin_trial,
        messages.EndTrial: SimulatedGpu.end_trial,
        messages.Upload: transfers.upload,
        messages.LaunchKernel: SimulatedGpu.launch,
    },
)
"""The requests that a worker may send."""


def main(fds: list[int], options: dict[str, Any]) -> None:
    """Serves the judge (first descriptor), over shared memory (second), and the worker (third)."""
    torch.set_num_threads(1)
    judge = Channel(socket.socket(fileno=fds[0]), buffers=2)
    worker = Channel(socket.socket(fileno=fds[2]), buffers=1, header=MAX_REQUEST)
    confine.limit_memory(PROCESS_MEMORY)
    confine.forbid_inspection()
    sim_memory.map_device(fds[1])
    gpu = SimulatedGpu(options)
    selector = selectors.DefaultSelector()
    selector.register(judge, selectors.EVENT_READ, _answer_judge)
    selector.register(worker, selectors.EVENT_READ, _answer_worker)
    while True:
        for key, _ in selector.select():
            channel: Any = key.fileobj
            try:
                key.data(gpu, channel, channel.recv(timeout=WORKER_PATIENCE))
            except ChannelError:
                if channel is judge:
                    return
                selector.unregister(channel)
                channel.close()


def _answer_judge(gpu: SimulatedGpu, channel: Channel, message: ChannelMessage) -> None:
    channel.send(FOR_JUDGE.answer(gpu, message.header, message.buffers))


def _answer_worker(gpu: SimulatedGpu, channel: Channel, message: ChannelMessage) -> None:
    channel.send(answer_worker(gpu, message), timeout=WORKER_PATIENCE)


def answer_worker(gpu: SimulatedGpu, message: ChannelMessage) -> dict[str, Any]:
    """Answers any message of a worker. Whatever is wrong with it becomes an error in the answer."""
    try:
        request = FOR_WORKER.decode(message.header, message.buffers)
        if not gpu.open:
            raise RefusedError("the call has ended")
        return FOR_WORKER.handle(gpu, request)
    except (BadRequestError, RefusedError, AsmError, DeviceMemoryError) as error:
        return _refused(str(error), type(error).__name__)
    except Exception as error:  # a hostile request may raise anything, and must not end the device
        return _refused(f"a malformed request: {error}", "malformed")


def _refused(text: str, kind: str) -> dict[str, Any]:
    return encode_answer(messages.RequestRefused(inert_text(text, 2000), kind))
