"""The process of a program's GPU: requests as hip_process_messages.cpp sends them, and errors."""

from __future__ import annotations

import re
import socket
import struct
import threading
from pathlib import Path

import pytest

import kernel_gym.simulated_rocm
from kernel_gym.sandbox.failures import BuildError
from kernel_gym.simulated_rocm import server
from kernel_gym.simulated_rocm.program_gpu import DeviceMemoryError, LaunchRefusedError
from kernel_gym.simulated_rocm.server import RequestNumber, Server

SOURCE = Path(kernel_gym.simulated_rocm.__file__).with_name("csrc") / "hip_process_state.h"


class Gpu:
    """Stands for a device: each call does what the test says."""

    recorder = None
    seconds = 0.25
    available = 4096
    printed = ((False, b"said\n"),)

    def __init__(self, outcome=None):
        self.outcome, self.charged = outcome, []

    def allocate(self, size, visible):
        """Returns the outcome, or raises it."""
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def add_module(self, content):
        """Raises the outcome."""
        raise self.outcome

    def charge(self, size, kind):
        """Keeps what was charged."""
        self.charged.append((size, kind))

    def launch(self, name, grid, block, lds, segment):
        """Keeps the launch; there is no fault."""
        self.launched = name, list(grid), list(block), lds, segment


def test_both_sides_number_requests_alike():
    listed = re.search(r"enum Request : uint32_t \{(.*?)\}", SOURCE.read_text(), re.DOTALL)
    names = re.findall(r"k(\w+)", listed.group(1))
    assert [name.upper() for name in names] == [request.name for request in RequestNumber]
    assert [request.value for request in RequestNumber] == list(range(1, len(names) + 1))


@pytest.mark.parametrize(
    ("request_", "error", "status"),
    [
        (RequestNumber.ALLOCATE, DeviceMemoryError("out of device memory: 9 bytes"), 2),
        (RequestNumber.ALLOCATE, LaunchRefusedError(701, "too much LDS"), 701),
        (RequestNumber.MODULE, BuildError("the code object is damaged"), 200),
    ],
)
def test_what_goes_wrong_becomes_an_error_and_a_line(request_, error, status):
    lines = []
    answer = Server(Gpu(error), lines.append).answer(request_, struct.pack("<QI", 9, 0))
    assert answer == (status, b"")
    assert len(lines) == 1
    assert str(error) in lines[0]


def test_a_launch_carries_its_arguments_and_what_it_printed():
    gpu = Gpu()
    body = struct.pack("<6IQI", 1, 2, 3, 64, 1, 1, 128, 3) + b"1:k" + b"segment"
    status, printed = Server(gpu, print).answer(RequestNumber.LAUNCH, body)
    assert gpu.launched == ("1:k", [1, 2, 3], [64, 1, 1], 128, b"segment")
    assert (status, printed) == (0, struct.pack("<II", 0, 5) + b"said\n")


def test_a_module_that_failed_has_no_kernels():
    assert Server(Gpu(), print).answer(RequestNumber.KERNEL, b"0:k") == (98, b"")


def test_requests_over_a_socket():
    near, far = socket.socketpair()
    gpu = Gpu(0x1000)
    thread = threading.Thread(target=server.serve, args=(Server(gpu, print), far))
    thread.start()
    for request, body in (
        (RequestNumber.ALLOCATE, struct.pack("<QI", 64, 1)),
        (RequestNumber.CHARGE, struct.pack("<QI", 8, 1)),  # has no answer
        (RequestNumber.CLOCK, b""),
        (RequestNumber.END, b""),
    ):
        near.sendall(struct.pack("<IQ", request, len(body)) + body)
    thread.join()
    with near.makefile("rb") as stream:
        assert stream.read(12 + 8) == struct.pack("<iQQ", 0, 8, 0x1000)
        assert stream.read(12 + 8) == struct.pack("<iQd", 0, 8, 0.25)
        assert stream.read(12) == struct.pack("<iQ", 0, 0)
    assert gpu.charged == [(8, 1)]
    near.close()
    far.close()
