"""The simulated GPU: a process on the judge's side that owns memory, launches, counters and time.

Two pipes lead here. The judge's is trusted and full; the worker's can allocate, upload, load code
and launch it, like the driver of a real GPU, and cannot read memory, counters or times.
"""

from __future__ import annotations

import random
import selectors
import socket
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from kernel_gym.devices.answers import MAX_KERNELS, MAX_REFUSED
from kernel_gym.devices.base import Audit
from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim.audits import Audits
from kernel_gym.devices.sim.facts import CallFacts, describe_kernel
from kernel_gym.devices.sim.memory import Arena, DeviceMemoryError
from kernel_gym.devices.sim.requests import (
    RefusedError,
    TensorOnDevice,
    check_geometry,
    check_kernel,
    parse_request,
    split,
)
from kernel_gym.hardware import SIMULATED
from kernel_gym.inert import MAX_LINE, inert_json, inert_text
from kernel_gym.sandbox import confine
from kernel_gym.sandbox.channel import Channel, ChannelError, Message
from kernel_gym.sim.engine.engine import AsmError, Engine, Kernel, pack_kernarg

POISON = 0xFF
"""Every byte of fresh memory: NaN in every float format, -1 in every integer one."""
HOST_LINK = 55e9
"""Bytes/s of a host-device copy (PCIe 5 x16, achievable; assumed)."""
HOST_COPY_LATENCY = 10e-6


MAX_REQUEST = 9 << 20
"""Bytes of the JSON of a request: an assembler text of the largest size fits, if all of it are line
ends."""
WORKER_PATIENCE = 5.0
"""Seconds that a worker may take to send the rest of a message, or to read an answer."""
PROCESS_MEMORY = 5 << 29
"""Private memory of this process, for hostile texts; the device's own memory is shared. Of this,
1 GiB is the account of that memory, of which little is ever touched."""


class DeviceServer:
    """State of one simulated GPU, and its answers to the worker and the judge."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.engine = Engine(threads=options["threads"])
        self.engine.set_memory(sim_memory.ARENA_BASE, sim_memory.ARENA_SIZE)
        self.arena = Arena(options["memory"])
        self.engine.variable_limit = options["memory"]
        self.spec = SIMULATED[options["arch"]]
        self.launch_limit = options["launch_limit"]
        self._same_samples = options.get("same_samples", False)
        self.sample_from(0)
        self.kernels: list[Kernel] = []
        self.worker_bytes = 0
        """Ever allocated by the worker."""
        self.open = True
        """Whether the worker may ask for anything: not between the end of a call and the next."""
        self._owned: set[int] = set()
        self._durations: dict[tuple[Any, ...], float] = {}
        self._pretended = 0.0
        self._allocations_changed = True
        self._counter = 0
        self.before = self.seconds = 0.0
        self.begin(noop=False)

    def sample_from(self, seed: int) -> dict[str, Any]:
        """Seeds the draws of sampled workgroups and of audited launches."""
        self._draws = random.Random(seed)
        self._audits = Audits(seed, self._same_samples)
        self._began = self._draws.getstate()
        return {}

    def begin(self, noop: bool, audit: str = Audit.OFF) -> dict[str, Any]:
        """Starts a call: clears counters; with `noop` kernels are accepted but do nothing.

        With `Audit.AGAIN` it is the last one once more, which the model of time looks at through
        the same samples: if it takes another time, that is not their luck.
        """
        self.noop = noop
        self.audit = Audit(audit)
        if self.audit is Audit.AGAIN:
            self._draws.setstate(self._began)
        self._began = self._draws.getstate()
        self.open = True
        self.before += self.seconds
        self.seconds = 0.0
        self.launches: list[dict[str, Any]] = []
        self.used = CallFacts()
        self._audits.begin(self.audit)
        self.refused: list[str] = []
        self.fault: dict[str, Any] | None = None
        return {}

    def end(self) -> dict[str, Any]:
        """Ends a call: modelled seconds, what was launched, faults, refusals.

        From here to the next `begin` the worker is refused everything, so that no work is done
        after the clock was read and before the outputs are.
        """
        self.open = False
        return {
            "seconds": self.seconds,
            "launches": len(self.launches),
            "launch_seconds": self.used.launch_seconds,
            "kernels": self.used.described(),
            **self._audits.record(),
            "refused": self.refused,
            "fault": self.fault,
        }

    def allocate(self, size: int, label: str | None = None) -> dict[str, Any]:
        """Allocates poisoned memory; returns its address."""
        self._counter += 1
        try:
            allocation = self.arena.allocate(size, label or f"tensor allocated as #{self._counter}")
        except DeviceMemoryError as error:
            return {"error": str(error), "kind": "memory", "worker_bytes": self.worker_bytes}
        if size:
            sim_memory.device_tensor(allocation.start, [size], [1], torch.uint8).fill_(POISON)
        self._allocations_changed = True
        return {"address": allocation.start}

    def free(self, address: int) -> dict[str, Any]:
        """Frees an allocation."""
        if self.arena.free(address):
            self._allocations_changed = True
        return {}

    def allocate_for_worker(self, size: int) -> dict[str, Any]:
        """The same for the worker, which chooses neither place nor name."""
        answer = self.allocate(size)
        if "address" in answer:
            self.worker_bytes += size
            self._owned.add(answer["address"])
        return answer

    def free_for_worker(self, address: int) -> dict[str, Any]:
        """Frees what the worker itself has allocated."""
        if address not in self._owned:
            raise RefusedError("the worker frees what it has not allocated")
        self._owned.discard(address)
        return self.free(address)

    def locate(self, address: int, size: int) -> dict[str, Any]:
        """Whether a range lies within one live allocation, and in which."""
        allocation = self.arena.locate(address, size)
        return {"allocation": asdict(allocation) if allocation else None}

    def load(self, text: str, name: str | None, shared: int | None) -> dict[str, Any]:
        """Decodes a kernel. The answer describes its arguments and the registers that it uses."""
        kernel = self.engine.load(text, name, shared)
        check_kernel(kernel, self.spec)
        self.kernels.append(kernel)
        self._audits.load(text, kernel)
        return {
            "kernel": len(self.kernels) - 1,
            "name": kernel.name,
            "args": [[a.size, a.value_kind, a.offset] for a in kernel.args],
            "registers": kernel.vgprs,
            "spills": kernel.vgpr_spills,
            "max_workgroup": kernel.max_workgroup,
            "total_registers": kernel.total_registers,
            "lds": kernel.lds_bytes,
            "scratch": kernel.scratch_bytes,
        }

    def variable(self, text: str, name: str) -> dict[str, Any]:
        """Address and size of a device variable of an assembler text; zeros if there is none."""
        address, size = self.engine.variable(text, name) or (0, 0)
        return {"address": address, "size": size}

    def names(self, text: str) -> dict[str, Any]:
        """The kernels in an assembler text."""
        return {"names": self.engine.kernel_names(text)}

    def launch(
        self,
        kernel: int,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        sizes: list[int],
        lds: int,
        data: bytes,
    ) -> dict[str, Any]:
        """Runs a kernel and adds its modelled time to the call's."""
        if self.fault:
            raise RefusedError(f"the device is in error: {self.fault['message']}")
        code = self._kernel(kernel)
        check_geometry(code, grid, block, lds, self.spec)
        if 0 in grid:
            return {}
        launched = (kernel, grid, block, lds)
        if self.noop:  # the worker's clock goes on as it did, so that it cannot tell
            self._pretended += self._durations.get(launched, self.spec.launch_seconds)
            self.launches.append({"kernel": kernel})
            return {}
        if self._allocations_changed:
            self.engine.set_allocations([(a.start, a.size, a.label) for a in self.arena])
            self._allocations_changed = False
        self.used.begin(code, block[0] * block[1] * block[2], code.lds_bytes + lds)
        audited = self._audits.draw(code)
        result = self.engine.launch(
            code,
            grid,
            block,
            pack_kernarg(code, split(data, sizes), grid, block, lds),
            dynamic_lds=lds,
            time_limit_s=self.launch_limit,
            audit=audited,
            reverse_waves=self.audit is Audit.REVERSED,
            # Each launch has its own draw, so that no launch can probe the next one.
            sample_seed=0 if self._same_samples else self._draws.getrandbits(64),
        )
        if result.fault:
            self.fault = inert_json(asdict(result.fault), text=MAX_LINE)
            raise RefusedError(result.fault.message)
        self.used.end(code, result)
        self._audits.launch(kernel, code, audited)
        self.seconds += result.seconds or 0.0
        self._durations[launched] = result.seconds or 0.0
        self.launches.append(_describe_launch(kernel, code, grid, block, lds, result))
        return {}

    def fill(self, tensor: TensorOnDevice, value: float | int | bool) -> dict[str, Any]:
        """Sets a tensor to a constant, charged as a fill kernel."""
        target = self._tensor(tensor, written=True)
        target.fill_(value)
        self.used.launch_seconds += self.spec.launch_seconds
        self.seconds += self.spec.operator_seconds(target.nbytes, 0, target.dtype)
        return {}

    def copy(self, source: TensorOnDevice, target: TensorOnDevice) -> dict[str, Any]:
        """Copies between two tensors of one dtype, charged as a copy kernel."""
        into, out_of = self._tensor(target, written=True), self._tensor(source)
        if into.dtype != out_of.dtype:
            raise RefusedError(f"a copy from {out_of.dtype} to {into.dtype} converts: that is work")
        into.copy_(out_of)
        self.used.launch_seconds += self.spec.launch_seconds
        self.seconds += self.spec.operator_seconds(2 * into.nbytes, 0, into.dtype)
        return {}

    def upload(self, address: int, data: bytes) -> dict[str, Any]:
        """Copies host bytes to device memory, charged as a transfer over the host link."""
        if not data:
            return {}
        if not self._is_live(address, len(data)):
            raise RefusedError("an upload outside any allocation")
        self.seconds += HOST_COPY_LATENCY + len(data) / HOST_LINK
        target = sim_memory.device_tensor(address, [len(data)], [1], torch.uint8)
        target.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        return {}

    def refuse(self, operator: str) -> dict[str, Any]:
        """Notes an operator that the worker's gate refused (a label, not a barrier)."""
        if len(self.refused) < MAX_REFUSED:
            self.refused.append(operator)
        return {}

    def clock(self) -> dict[str, Any]:
        """Modelled busy seconds since the start, for candidates that time or tune themselves."""
        return {"seconds": self.before + self.seconds + self._pretended}

    def facts(self) -> dict[str, Any]:
        """What the compiler made of the kernels of the last call, or of all when it had none."""
        described = self.used.described() or [describe_kernel(k) for k in self.kernels]
        return {"kernels": described[:MAX_KERNELS]}

    def _kernel(self, index: int) -> Kernel:
        if not 0 <= index < len(self.kernels):
            raise RefusedError(f"no kernel {index} is loaded")
        return self.kernels[index]

    def _is_live(self, address: int, size: int) -> bool:
        """Whether a range lies within one allocation, or within the variables of a module."""
        allocated = self.arena.locate(address, size) is not None
        return allocated or self.engine.variable_at(address, size)

    def _tensor(self, described: TensorOnDevice, written: bool = False) -> torch.Tensor:
        if written and described.repeats:
            raise RefusedError("writing to a tensor whose elements share memory")
        if described.nbytes > self.arena.capacity:
            raise RefusedError("a tensor larger than the device's memory")
        if described.extent and not self._is_live(described.address, described.extent):
            raise RefusedError("a tensor that does not lie within one allocation")
        shape, strides = list(described.shape), list(described.strides)
        return sim_memory.device_tensor(described.address, shape, strides, described.dtype)


_FOR_JUDGE = ("sample_from", "begin", "end", "allocate", "free", "locate", "facts")
_FOR_WORKER: dict[str, Callable[..., dict[str, Any]]] = {
    "allocate": DeviceServer.allocate_for_worker,
    "free": DeviceServer.free_for_worker,
    "load": DeviceServer.load,
    "names": DeviceServer.names,
    "variable": DeviceServer.variable,
    "fill": DeviceServer.fill,
    "copy": DeviceServer.copy,
    "refuse": DeviceServer.refuse,
    "clock": DeviceServer.clock,
    "upload": DeviceServer.upload,
    "launch": DeviceServer.launch,
}


def main(fds: list[int], options: dict[str, Any]) -> None:
    """Serves the judge (first descriptor), over shared memory (second), and the worker (third)."""
    torch.set_num_threads(1)
    judge = Channel(socket.socket(fileno=fds[0]))
    worker = Channel(socket.socket(fileno=fds[2]), buffers=1, header=MAX_REQUEST)
    confine.limit_memory(PROCESS_MEMORY)
    confine.forbid_inspection()
    sim_memory.map_device(fds[1])
    server = DeviceServer(options)
    selector = selectors.DefaultSelector()
    selector.register(judge, selectors.EVENT_READ, _answer_judge)
    selector.register(worker, selectors.EVENT_READ, _answer_worker)
    while True:
        for key, _ in selector.select():
            channel: Any = key.fileobj
            try:
                key.data(server, channel, channel.recv(timeout=WORKER_PATIENCE))
            except ChannelError:
                if channel is judge:
                    return
                selector.unregister(channel)
                channel.close()


def _answer_judge(server: DeviceServer, channel: Channel, message: Message) -> None:
    do = message.header.pop("do")
    if do not in _FOR_JUDGE:
        raise ValueError(f"the judge asked for {do!r}")
    channel.send(getattr(server, do)(**message.header))


def _answer_worker(server: DeviceServer, channel: Channel, message: Message) -> None:
    channel.send(answer_worker(server, message), timeout=WORKER_PATIENCE)


def answer_worker(server: DeviceServer, message: Message) -> dict[str, Any]:
    """Answers anything a worker may send; whatever is wrong with it is the worker's error."""
    try:
        return _serve_worker(server, message)
    except (RefusedError, AsmError, DeviceMemoryError) as error:
        return {"error": inert_text(str(error), 2000), "kind": type(error).__name__}
    except Exception as error:  # a hostile request may raise anything, and must not end the device
        return {"error": inert_text(f"a malformed request: {error}", 2000), "kind": "malformed"}


def _serve_worker(server: DeviceServer, message: Message) -> dict[str, Any]:
    request = parse_request(message.header, message.buffers[0] if message.buffers else b"")
    if not server.open:
        raise RefusedError("the call has ended")
    return _FOR_WORKER[request.do](server, **request.fields)


def _describe_launch(
    index: int,
    kernel: Kernel,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    lds: int,
    result: Any,
) -> dict[str, Any]:
    return {
        "kernel": index,
        "name": kernel.name,
        "grid": list(grid),
        "block": list(block),
        "lds": kernel.lds_bytes + lds,
        "seconds": result.seconds,
        "profile": inert_json(result.profile),  # quotes lines of the candidate's text
    }
