"""Refuses kernels and launches that a real GPU would not run.

The form of a request is checked before, see `kernel_gym.protocol`.
"""

from __future__ import annotations

from kernel_gym.hardware import DeviceSpec
from kernel_gym.protocol.fields import MAX_ARGUMENTS, MAX_NAME
from kernel_gym.sim.engine.engine import Kernel, KernelArg

MAX_CODE_BYTES = 4 << 20
"""Limit of an assembler text or a code object of a worker."""
MAX_WORKGROUPS = 1 << 31
"""The limit for a launch. Along one axis there must be fewer."""


class RefusedError(Exception):
    """The worker asked for something that the device does not do for it."""


def check_size(code: bytes, limit: int | None = None) -> None:
    """Checks that a module is not too large.

    Args:
        code: The module.
        limit: The most bytes that it may have; None: the limit of a worker's module.

    Raises:
        RefusedError: It has more.
    """
    most = MAX_CODE_BYTES if limit is None else limit
    if len(code) > most:
        raise RefusedError(f"a module of {len(code)} bytes, expected at most {most}")


def check_kernel(kernel: Kernel, spec: DeviceSpec) -> None:
    """Checks that the device can run a kernel, and that its text declares what it uses.

    Raises:
        RefusedError: The device cannot, or the text does not.
    """
    if len(kernel.name) > MAX_NAME or not kernel.name.isprintable():
        raise RefusedError("the name of a kernel is too long, or not printable")
    places = [0, kernel.kernarg_size, kernel.lds_bytes, kernel.scratch_bytes]
    places += [place for arg in kernel.args for place in (arg.offset, arg.size)]
    if min(places) < 0 or max([kernel.kernarg_size, *map(_end, kernel.args)]) > MAX_ARGUMENTS:
        raise RefusedError(f"arguments must lie within {MAX_ARGUMENTS} bytes")
    check_target(kernel, spec)
    check_registers(kernel)


def _end(arg: KernelArg) -> int:
    return arg.offset + arg.size


def check_target(kernel: Kernel, spec: DeviceSpec) -> None:
    """Checks that a kernel is compiled for this device.

    Code for another GPU would run by the rules of that GPU, such as more LDS.

    Raises:
        RefusedError: It is compiled for another one.
    """
    if kernel.arch != spec.arch:
        raise RefusedError(
            f"{kernel.name} is compiled for {kernel.arch}, expected {spec.arch} ({spec.name})"
        )


def check_registers(kernel: Kernel) -> None:
    """Checks that a kernel declares all vector registers that it uses: they decide occupancy.

    Accumulation registers follow the others in the same file, from a place that it declares too.

    Raises:
        RefusedError: It declares fewer, or registers overlap.
    """
    builder = kernel.decoded.builder
    used, start = builder.vector_registers, kernel.descriptor["accum_offset"]
    if builder.accumulators:
        if used > start:
            raise RefusedError(f"{kernel.name} uses {used} registers before v[{start}], its a[0]")
        used = start + builder.accumulators
    if used > kernel.total_registers:
        raise RefusedError(
            f"{kernel.name} declares {kernel.total_registers} vector registers and uses {used}"
        )


def split(data: bytes, sizes: list[int]) -> list[bytes]:
    """Splits the raw bytes of a launch into the values of its arguments.

    Raises:
        RefusedError: The sizes do not add up to the bytes.
    """
    if sum(sizes) != len(data):
        raise RefusedError("the arguments do not have the sizes that are stated")
    values, at = [], 0
    for size in sizes:
        values.append(data[at : at + size])
        at += size
    return values


def check_geometry(
    kernel: Kernel,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    lds: int,
    spec: DeviceSpec,
) -> None:
    """Checks the grid, the block and the dynamic LDS (bytes) of a launch.

    Raises:
        RefusedError: The device cannot run such a launch.
    """
    threads = block[0] * block[1] * block[2]
    limit = min(1024, kernel.max_workgroup or 1024)
    if min(block) < 1 or threads > limit:
        raise RefusedError(f"invalid launch: grid {grid}, block {block} (at most {limit} threads)")
    if max(grid) >= MAX_WORKGROUPS or grid[0] * grid[1] * grid[2] > MAX_WORKGROUPS:
        raise RefusedError(
            f"invalid launch: grid {grid}, expected fewer than {MAX_WORKGROUPS} workgroups along "
            "each axis and at most as many in all"
        )
    total = kernel.lds_bytes + lds
    if total > spec.lds_bytes:
        raise RefusedError(
            f"{kernel.name} asks for {total} bytes of LDS, {spec.lds_bytes} are there"
        )
    if not kernel.occupancy(threads, 0).workgroups_per_cu:
        raise RefusedError(
            f"{kernel.name} has {kernel.total_registers} vector registers: a compute unit does not "
            f"hold a workgroup of {threads} threads"
        )
