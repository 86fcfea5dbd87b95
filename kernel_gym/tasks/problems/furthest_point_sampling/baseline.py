"""Furthest point sampling: one program a cloud, with its points and distances in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def sampling_kernel(points_ptr, index_ptr, row, size, count, SIZE: tl.constexpr):
    """Chooses the points of one cloud."""
    batch = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, SIZE)
    base = points_ptr + batch * size * row
    x = tl.load(base + at * row, mask=at < size, other=0.0)
    y = tl.load(base + at * row + 1, mask=at < size, other=0.0)
    z = tl.load(base + at * row + 2, mask=at < size, other=0.0)
    near = tl.where(at < size, 1e10, -1.0)
    last = 0
    for i in range(0, count):
        tl.store(index_ptr + batch * count + i, last)
        dx = x - tl.load(base + last * row)
        dy = y - tl.load(base + last * row + 1)
        dz = z - tl.load(base + last * row + 2)
        near = tl.minimum(near, dx * dx + dy * dy + dz * dz)
        last = tl.argmax(near, axis=0, tie_break_left=True).to(tl.int32)


def furthest_point_sampling(points: torch.Tensor, count: int) -> torch.Tensor:
    """Indices into points, float32[batch, size, 3], whose rows may be padded."""
    batch, size, _ = points.shape
    index = torch.empty((batch, count), dtype=torch.int32, device=points.device)
    sampling_kernel[(batch,)](
        points, index, points.stride(1), size, count, SIZE=triton.next_power_of_2(size), num_warps=8
    )
    return index
