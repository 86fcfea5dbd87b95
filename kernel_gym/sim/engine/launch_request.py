"""The request of a launch, as the engine's library takes it."""

from __future__ import annotations

import ctypes as ct
import struct

from kernel_gym.sim import layouts
from kernel_gym.sim.asm.targets import TARGETS
from kernel_gym.sim.constants import FIGURES
from kernel_gym.sim.engine.kernel import Kernel, assign_registers
from kernel_gym.sim.timing.model import l1_sets
from kernel_gym.sim.timing.occupancy import Occupancy

_PACKET = struct.Struct("<HHHHHHIIIIIQQQQ")  # hsa_kernel_dispatch_packet_t


def launch_request(
    kernel: Kernel,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    kernarg: bytes,
    lds: int,
    residency: Occupancy,
    threads: int,
) -> tuple[layouts.LaunchRequest, list[object]]:
    """Returns the request of a launch, and objects that must live until the launch ends.

    Args:
        kernel: The kernel.
        grid: Workgroups along x, y, z.
        block: Threads of a workgroup along x, y, z.
        kernarg: The argument segment.
        lds: Bytes of LDS of a workgroup.
        residency: The workgroups that a compute unit holds.
        threads: Threads of the host, where the order of workgroups has no effect.
    """
    request = layouts.LaunchRequest()
    request.grid[:], request.block[:] = grid, block
    request.lds_size, request.scratch_size = lds, kernel.scratch_bytes
    # Scalar loads may read on to the end of a cache line: the loader pads the segment.
    request.kernarg_size = -(-max(len(kernarg), kernel.kernarg_size, 1) // 64) * 64 + 64
    segment = ct.create_string_buffer(kernarg, request.kernarg_size)
    request.kernarg = ct.addressof(segment)
    packet = ct.create_string_buffer(
        _PACKET.pack(
            *(0, 3, *block, 0, *(g * b for g, b in zip(grid, block, strict=True))),
            *(kernel.scratch_bytes, lds, 0, request.kernarg, 0, 0),
        ),
        64,
    )
    request.packet = ct.addressof(packet)
    data = kernel.decoded.data
    if data is not None:
        request.data, request.data_size = ct.addressof(data), len(data)
    assign_registers(request, kernel.descriptor)
    request.fill_row = layouts.NOT_WANTED
    in_order = kernel.decoded.ordered or kernel.calls_host
    request.threads = 1 if in_order else threads
    compute_units = TARGETS[kernel.arch].compute_units
    request.resident_limit = residency.workgroups_per_cu * compute_units
    figures = FIGURES[kernel.arch]
    request.l1_sets = l1_sets(residency, grid[0] * grid[1] * grid[2], figures)
    return request, [segment, packet]
