"""Packs kernel arguments the way the HIP runtime does."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gym.sim.engine.kernel import Kernel

Dim3 = Sequence[int]
SHARED_APERTURE, PRIVATE_APERTURE = 0x10000, 0x20000  # upper halves of flat addresses


def _hidden_value(
    kind: str, grid: Sequence[int], block: Sequence[int], dynamic_lds: int, host_calls: int
) -> int:
    """Value of a hidden argument; 0 for those without a meaning here."""
    for i, axis in enumerate("xyz"):
        if kind == f"hidden_block_count_{axis}":
            return grid[i]
        if kind == f"hidden_group_size_{axis}":
            return block[i]
    return {
        "hidden_grid_dims": 1 + max((i for i in range(3) if grid[i] * block[i] > 1), default=0),
        "hidden_dynamic_lds_size": dynamic_lds,
        "hidden_hostcall_buffer": host_calls,
        "hidden_shared_base": SHARED_APERTURE,
        "hidden_private_base": PRIVATE_APERTURE,
    }.get(kind, 0)


def dim3(values: Dim3, what: str) -> tuple[int, int, int]:
    """Fills up counts along x, y, z with ones.

    Raises:
        ValueError: If there are more than three, or one is out of range.
    """
    filled = [*values, 1, 1, 1][:3] if len(values) <= 3 else list(values)
    if len(filled) != 3 or any(not 0 <= value < 1 << 31 for value in filled):
        raise ValueError(f"{what} is {tuple(values)}, expected up to three counts below 2^31")
    return filled[0], filled[1], filled[2]


def pack_kernarg(
    kernel: Kernel,
    values: Sequence[bytes],
    grid: Dim3,
    block: Dim3,
    dynamic_lds: int = 0,
    host_calls: int = 0,
) -> bytes:
    """Lay out the argument segment of a launch.

    Args:
        kernel: The kernel.
        values: Little-endian bytes of the explicit arguments, in order; left-out trailing ones
            become zero.
        grid: Workgroups along x, y, z.
        block: Threads of a workgroup along x, y, z.
        dynamic_lds: Bytes of dynamic LDS.
        host_calls: Address of the buffer for calls of the host, see `HostCalls`.

    Raises:
        ValueError: If there are too many values or one has the wrong size.
    """
    grid3, block3 = dim3(grid, "grid"), dim3(block, "block")
    explicit = [arg for arg in kernel.args if not arg.hidden]
    if len(values) > len(explicit):
        raise ValueError(f"found {len(values)} arguments, expected {len(explicit)}")
    end = max((arg.offset + arg.size for arg in kernel.args), default=0)
    segment = bytearray(max(kernel.kernarg_size, end))
    for i, (arg, value) in enumerate(zip(explicit, values, strict=False)):
        if len(value) != arg.size:
            raise ValueError(
                f"argument {i} ({arg.name or arg.value_kind}) has {len(value)} bytes, "
                f"expected {arg.size}"
            )
        segment[arg.offset : arg.offset + arg.size] = value
    for arg in kernel.args:
        if arg.hidden:
            number = _hidden_value(arg.value_kind, grid3, block3, dynamic_lds, host_calls)
            segment[arg.offset : arg.offset + arg.size] = number.to_bytes(arg.size, "little")
    return bytes(segment)
