"""Checks of what a worker asks the simulated GPU for: the worker may be hostile."""

from __future__ import annotations

from typing import Any

from kernel_gym.devices.specs import DeviceSpec
from kernel_gym.sim.engine import Kernel

MAX_TEXT = 4 << 20
"""Most bytes of an assembler text."""


class RefusedError(Exception):
    """The worker asked for something that the device does not do for it."""


def whole(value: Any, what: str) -> int:
    """A count that a worker has sent.

    Raises:
        RefusedError: it is not one.
    """
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise RefusedError(f"{what} is {str(value)[:40]}, expected a whole number")
    return value


def check_text(text: Any) -> None:
    """Assembler text is text, and not too long."""
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise RefusedError(f"an assembler text must be text of at most {MAX_TEXT} characters")


def check_target(kernel: Kernel, spec: DeviceSpec) -> None:
    """Code for another GPU would run by that one's rules: more LDS, faster instructions."""
    if kernel.arch != spec.arch:
        raise RefusedError(
            f"{kernel.name} is compiled for {kernel.arch}, expected {spec.arch} ({spec.name})"
        )


def check_registers(kernel: Kernel) -> None:
    """The text may not declare fewer vector registers than it uses: occupancy rests on that."""
    builder = kernel.decoded.builder
    used = builder.vector_registers + builder.accumulators
    if used > kernel.total_registers:
        raise RefusedError(
            f"{kernel.name} declares {kernel.total_registers} vector registers and uses {used}"
        )


def split(data: bytes, sizes: list[int]) -> list[bytes]:
    """The values of the arguments of a launch."""
    if sum(whole(size, "the size of an argument") for size in sizes) != len(data):
        raise RefusedError("the arguments do not have the sizes that are said")
    values, at = [], 0
    for size in sizes:
        values.append(data[at : at + size])
        at += size
    return values


def check_geometry(
    kernel: Kernel, grid: list[int], block: list[int], lds: int, spec: DeviceSpec
) -> None:
    """The shape of a launch is one that the device has."""
    if len(grid) != 3 or len(block) != 3:
        raise RefusedError(f"invalid launch: grid {grid}, block {block}, expected three sizes each")
    for value in (*grid, *block, lds):
        whole(value, "a size of a launch")
    threads = block[0] * block[1] * block[2]
    limit = min(1024, kernel.max_workgroup or 1024)
    if min(block) < 1 or threads > limit:
        raise RefusedError(f"invalid launch: grid {grid}, block {block} (at most {limit} threads)")
    if grid[0] * grid[1] * grid[2] > 1 << 31:
        raise RefusedError(f"invalid launch: grid {grid} is too large")
    total = kernel.lds_bytes + lds
    if total > spec.lds_bytes:
        raise RefusedError(
            f"{kernel.name} asks for {total} bytes of LDS, {spec.lds_bytes} are there"
        )
