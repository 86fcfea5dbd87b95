"""Nearest neighbours: one program a query, which keeps its distances to all points in registers."""

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
    """Reads the points once, then takes the nearest point that is left, count times."""
    query = tl.program_id(0)
    batch = tl.program_id(1).to(tl.int64)
    own = queries_ptr + batch * queries_batch + query * queries_row
    at = tl.arange(0, BLOCK)
    inside = at < size
    point = points_ptr + batch * points_batch + at * points_row
    dx = tl.load(point, mask=inside, other=0.0) - tl.load(own)
    dy = tl.load(point + 1, mask=inside, other=0.0) - tl.load(own + 1)
    dz = tl.load(point + 2, mask=inside, other=0.0) - tl.load(own + 2)
    left = tl.where(inside, dx * dx + dy * dy + dz * dz, float("inf"))
    out = (batch * queries + query) * count
    for i in range(0, count):
        nearest = tl.min(left, axis=0)
        place = tl.min(tl.where(left == nearest, at, BLOCK), axis=0)
        tl.store(distance_ptr + out + i, nearest)
        tl.store(index_ptr + out + i, place)
        left = tl.where(at == place, float("inf"), left)


def knn(
    queries: torch.Tensor, points: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Neighbours of queries among points, float32[batch, size, 3] with any outer strides."""
    batch, number, _ = queries.shape
    shape = (batch, number, count)
    distance = torch.empty(shape, dtype=torch.float32, device=queries.device)
    index = torch.empty(shape, dtype=torch.int32, device=queries.device)
    block = triton.next_power_of_2(points.shape[1])
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
        BLOCK=block,
        num_warps=min(16, max(1, block // 512)),
    )
    return distance, index
