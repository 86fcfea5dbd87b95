"""Nearest neighbours: one program a query; it looks for the next nearest until it has enough."""

import torch
import triton
import triton.language as tl


@triton.jit
def knn_kernel(
    queries_ptr,
    points_ptr,
    distance_ptr,
    index_ptr,
    queries_batch,
    queries_row,
    points_batch,
    points_row,
    queries,
    size,
    count,
    BLOCK: tl.constexpr,
):
    """Reads all points once for each neighbour."""
    query = tl.program_id(0)
    batch = tl.program_id(1).to(tl.int64)
    own = queries_ptr + batch * queries_batch + query * queries_row
    x = tl.load(own)
    y = tl.load(own + 1)
    z = tl.load(own + 2)
    out = (batch * queries + query) * count
    lane = tl.arange(0, BLOCK)
    last = -1.0
    last_at = -1
    for i in range(0, count):
        best = tl.full([BLOCK], float("inf"), tl.float32)
        best_at = tl.full([BLOCK], 2147483647, tl.int32)
        for start in range(0, size, BLOCK):
            at = start + lane
            inside = at < size
            point = points_ptr + batch * points_batch + at * points_row
            dx = tl.load(point, mask=inside, other=0.0) - x
            dy = tl.load(point + 1, mask=inside, other=0.0) - y
            dz = tl.load(point + 2, mask=inside, other=0.0) - z
            d = dx * dx + dy * dy + dz * dz
            later = inside & ((d > last) | ((d == last) & (at > last_at)))
            better = later & (d < best)
            best = tl.where(better, d, best)
            best_at = tl.where(better, at, best_at)
        last = tl.min(best, axis=0)
        last_at = tl.min(tl.where(best == last, best_at, 2147483647), axis=0)
        tl.store(distance_ptr + out + i, last)
        tl.store(index_ptr + out + i, last_at)


def knn(
    queries: torch.Tensor, points: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Neighbours of queries among points, float32[batch, size, 3] with any outer strides."""
    batch, number, _ = queries.shape
    shape = (batch, number, count)
    distance = torch.empty(shape, dtype=torch.float32, device=queries.device)
    index = torch.empty(shape, dtype=torch.int32, device=queries.device)
    knn_kernel[(number, batch)](
        queries,
        points,
        distance,
        index,
        *queries.stride()[:2],
        *points.stride()[:2],
        number,
        points.shape[1],
        count,
        BLOCK=128,
        num_warps=2,
    )
    return distance, index
