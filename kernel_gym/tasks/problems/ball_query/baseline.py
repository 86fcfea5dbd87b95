"""Ball query: one program a centre, all points in blocks, ranks by a running count."""

import torch
import triton
import triton.language as tl


@triton.jit
def ball_query_kernel(
    points_ptr,
    centres_ptr,
    index_ptr,
    points_batch,
    points_row,
    centres_batch,
    centres_row,
    size,
    centres,
    radius,
    count,
    BLOCK: tl.constexpr,
):
    """Stores near points at their rank, then fills the rest with the first."""
    centre = tl.program_id(0)
    batch = tl.program_id(1).to(tl.int64)
    middle = centres_ptr + batch * centres_batch + centre * centres_row
    x = tl.load(middle)
    y = tl.load(middle + 1)
    z = tl.load(middle + 2)
    out = index_ptr + (batch * centres + centre) * count
    lane = tl.arange(0, BLOCK)
    found = 0
    first = size
    for start in range(0, size, BLOCK):
        at = start + lane
        inside = at < size
        point = points_ptr + batch * points_batch + at * points_row
        dx = tl.load(point, mask=inside, other=0.0) - x
        dy = tl.load(point + 1, mask=inside, other=0.0) - y
        dz = tl.load(point + 2, mask=inside, other=0.0) - z
        near = inside & (dx * dx + dy * dy + dz * dz < radius * radius)
        rank = found + tl.cumsum(near.to(tl.int32), axis=0) - 1
        tl.store(out + rank, at, mask=near & (rank < count))
        first = tl.minimum(first, tl.min(tl.where(near, at, size), axis=0))
        found += tl.sum(near.to(tl.int32), axis=0)
    first = tl.where(found == 0, 0, first)
    for start in range(0, count, BLOCK):
        at = start + lane
        tl.store(out + at, tl.zeros([BLOCK], tl.int32) + first, mask=(at >= found) & (at < count))


def ball_query(
    points: torch.Tensor, centres: torch.Tensor, radius: float, count: int
) -> torch.Tensor:
    """Indices for points, float32[batch, points, 3], around centres; any outer strides."""
    batch, size, _ = points.shape
    middles = centres.shape[1]
    index = torch.empty((batch, middles, count), dtype=torch.int32, device=points.device)
    ball_query_kernel[(middles, batch)](
        points,
        centres,
        index,
        *points.stride()[:2],
        *centres.stride()[:2],
        size,
        middles,
        radius,
        count,
        BLOCK=256,
    )
    return index
