"""The process of the simulated GPU of a HIP program. hip_process.cpp starts it and asks.

A request is its number (u32), the bytes of its body (u64) and the body. An answer is a HIP error
(i32), the bytes of its body (u64) and the body. Both processes run for the same user and trust
each other: this is no sandbox.
"""

from __future__ import annotations

import enum
import os
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.errors import InputError
from kernel_gym.sandbox.failures import BuildError
from kernel_gym.sim.asm.errors import AsmError
from kernel_gym.simulated_rocm.program_gpu import (
    DeviceMemoryError,
    LaunchRefusedError,
    ProgramGpu,
    why_missing,
)
from kernel_gym.simulated_rocm.result_recorder import ResultRecorder
from kernel_gym.simulated_rocm.settings import SimSettings
from kernel_gym.symbols import plain_name
from kernel_gym.worker.hip.described import described
from kernel_gym.worker.sim.properties import PROPERTIES

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_SYMBOL = 0, 1, 2, 13
INVALID_DEVICE_FUNCTION, INVALID_IMAGE, NOT_FOUND, LAUNCH_FAILURE = 98, 200, 500, 719
_HEAD, _ANSWER = struct.Struct("<IQ"), struct.Struct("<iQ")
_LAUNCH = struct.Struct("<6IQI")

Answer = tuple[int, bytes]


class RequestNumber(enum.IntEnum):
    """Numbers of requests; mirrored by hip_process_state.h."""

    ALLOCATE = 1
    RELEASE = 2
    MODULE = 3
    KERNEL = 4
    OCCUPANCY = 5
    VARIABLE = 6
    LAUNCH = 7
    CHARGE = 8
    CLOCK = 9
    MISSING = 10
    END = 11
    AVAILABLE = 12


_WITHOUT_ANSWER = (RequestNumber.CHARGE, RequestNumber.MISSING)


class Server:
    """Answers the requests of one program.

    Args:
        gpu: The device.
        say: Takes lines for the user.
    """

    def __init__(self, gpu: ProgramGpu, say: Callable[[str], None]) -> None:
        self._gpu, self._say = gpu, say

    def answer(self, request: RequestNumber, body: bytes) -> Answer:
        """Answers one request. What goes wrong becomes a HIP error and a line for the user."""
        try:
            answer: Answer = getattr(self, f"_{request.name.lower()}")(body)
            return answer
        except DeviceMemoryError as error:
            self._say(str(error))
            return OUT_OF_MEMORY, b""
        except LaunchRefusedError as error:
            self._say(str(error))
            return error.status, b""
        except BuildError as error:
            self._say(f"a module cannot be loaded: {error}")
            return INVALID_IMAGE, b""

    def _allocate(self, body: bytes) -> Answer:
        size, visible = struct.unpack("<QI", body)
        return SUCCESS, struct.pack("<Q", self._gpu.allocate(size, bool(visible)))

    def _release(self, body: bytes) -> Answer:
        freed = self._gpu.free(*struct.unpack("<Q", body))
        return (SUCCESS if freed else INVALID_VALUE), b""

    def _module(self, body: bytes) -> Answer:
        return SUCCESS, struct.pack("<i", self._gpu.add_module(body))

    def _kernel(self, body: bytes) -> Answer:
        name = body.decode()
        number, _, plain = name.partition(":")
        if number == "0":  # its module could not be loaded, which was said then
            return INVALID_DEVICE_FUNCTION, b""
        try:
            if not self._gpu.has_kernel(name):
                return NOT_FOUND, b""
            kernel = self._gpu.kernel(name)
        except AsmError as error:
            self._say(f"kernel {plain_name(plain)} cannot run: {error}")
            if self._gpu.recorder:
                self._gpu.recorder.missing(*why_missing(error, plain))
            return INVALID_DEVICE_FUNCTION, b""
        explicit = [arg for arg in kernel.args if not arg.hidden]
        limits = kernel.lds_bytes, kernel.scratch_bytes, min(1024, kernel.max_workgroup or 1024)
        head = struct.pack("<4iI", kernel.total_registers, *limits, len(explicit))
        return SUCCESS, head + b"".join(struct.pack("<II", a.offset, a.size) for a in explicit)

    def _occupancy(self, body: bytes) -> Answer:
        threads, lds = struct.unpack_from("<QQ", body)
        kernel = self._gpu.kernel(body[16:].decode())
        residency = kernel.occupancy(threads, kernel.lds_bytes + lds)
        return SUCCESS, struct.pack("<i", residency.workgroups_per_cu)

    def _variable(self, body: bytes) -> Answer:
        place = self._gpu.variable(body.decode())
        return (SUCCESS, struct.pack("<QQ", *place)) if place else (INVALID_SYMBOL, b"")

    def _launch(self, body: bytes) -> Answer:
        *shape, lds, length = _LAUNCH.unpack_from(body)
        name = body[_LAUNCH.size : _LAUNCH.size + length].decode()
        segment = body[_LAUNCH.size + length :]
        fault = self._gpu.launch(name, shape[:3], shape[3:], lds, segment)
        if fault:
            self._say(fault.message)
        pieces = (struct.pack("<II", e, len(text)) + text for e, text in self._gpu.printed)
        return (LAUNCH_FAILURE if fault else SUCCESS), b"".join(pieces)

    def _charge(self, body: bytes) -> Answer:
        self._gpu.charge(*struct.unpack("<QI", body))
        return SUCCESS, b""

    def _clock(self, _: bytes) -> Answer:
        return SUCCESS, struct.pack("<d", self._gpu.seconds)

    def _missing(self, body: bytes) -> Answer:
        advice = "it is not simulated and returns hipErrorNotSupported"
        if self._gpu.recorder:
            self._gpu.recorder.missing("api", body.decode(), "", f"{body.decode()}: {advice}")
        return SUCCESS, b""

    def _end(self, _: bytes) -> Answer:
        if self._gpu.recorder:
            self._gpu.recorder.end(self._gpu.seconds)
        return SUCCESS, b""

    def _available(self, _: bytes) -> Answer:
        return SUCCESS, struct.pack("<Q", self._gpu.available)


def serve(server: Server, channel: socket.socket) -> None:
    """Answers requests until the program ends or closes the channel."""
    with channel.makefile("rb") as stream:
        while True:
            head = stream.read(_HEAD.size)
            if len(head) < _HEAD.size:
                return
            number, size = _HEAD.unpack(head)
            request = RequestNumber(number)
            status, body = server.answer(request, _read(stream, size))
            if request not in _WITHOUT_ANSWER:
                channel.sendall(_ANSWER.pack(status, len(body)) + body)
            if request is RequestNumber.END:
                return


def _read(stream: BinaryIO, size: int) -> bytes:
    body = stream.read(size)
    if len(body) < size:
        raise EOFError(f"found {len(body)} bytes of a request, expected {size}")
    return body


def main(channel: int, memory: int, program: int) -> None:
    """Runs the device of a program.

    Args:
        channel: Descriptor of the socket to it.
        memory: Descriptor of the file that is the device's memory.
        program: Its process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program decides what an interrupt does
    _close_others(channel, memory)
    connection = socket.socket(fileno=channel)
    try:
        settings = SimSettings.from_environment() or SimSettings()
        recorder = ResultRecorder.from_environment("hip", _words(program))
        sim_memory.map_device(memory)
        gpu = ProgramGpu(settings, recorder)
    except (InputError, OSError, MemoryError, RuntimeError) as error:
        _say(str(error))
        sys.exit(125)
    connection.sendall(bytes(described(PROPERTIES[settings.arch])))
    try:
        serve(Server(gpu, _say), connection)
    except (EOFError, ConnectionError):
        pass  # the program ended without saying so
    except Exception:  # the program gets an exit code
        traceback.print_exc()
        sys.exit(125)


def _say(line: str) -> None:
    os.write(2, f"kernel-gym: {line}\n".encode())


def _words(program: int) -> list[str]:
    try:
        content = Path(f"/proc/{program}/cmdline").read_bytes()
    except OSError:
        return ["?"]
    return [word.decode(errors="replace") for word in content.split(b"\0")[:-1]]


def _close_others(*kept: int) -> None:
    """Closes what the program had open: a pipe would else stay open as long as this process."""
    low = 3
    for descriptor in sorted(kept):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, max(low, 1 << 16))
