"""Hash encoding: one program a strip of points of one level."""

import torch
import triton
import triton.language as tl


@triton.jit
def encode_kernel(
    point_ptr,
    table_ptr,
    resolution_ptr,
    out_ptr,
    point_row,
    table_row,
    points,
    levels,
    size,
    BLOCK: tl.constexpr,
):
    """Encodes BLOCK points on one level."""
    level = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < points
    sides = tl.load(resolution_ptr + level).to(tl.float32)
    x = tl.load(point_ptr + i * point_row, mask=inside, other=0.0) * sides
    y = tl.load(point_ptr + i * point_row + 1, mask=inside, other=0.0) * sides
    z = tl.load(point_ptr + i * point_row + 2, mask=inside, other=0.0) * sides
    a = x.to(tl.int32)
    b = y.to(tl.int32)
    c = z.to(tl.int32)
    x -= a
    y -= b
    z -= c
    first = tl.zeros([BLOCK], tl.float32)
    second = tl.zeros([BLOCK], tl.float32)
    for corner in range(8):
        dx = corner & 1
        dy = (corner >> 1) & 1
        dz = corner >> 2
        weight = tl.where(dx == 1, x, 1.0 - x) * tl.where(dy == 1, y, 1.0 - y)
        weight *= tl.where(dz == 1, z, 1.0 - z)
        code = (a + dx).to(tl.int64) ^ ((b + dy).to(tl.int64) * 2654435761)
        code = ((code ^ ((c + dz).to(tl.int64) * 805459861)) & 0xFFFFFFFF) % size
        row = table_ptr + (level * size + code) * table_row
        first += weight * tl.load(row, mask=inside, other=0.0).to(tl.float32)
        second += weight * tl.load(row + 1, mask=inside, other=0.0).to(tl.float32)
    out = out_ptr + (i * levels + level) * 2
    tl.store(out, first.to(tl.float16), mask=inside)
    tl.store(out + 1, second.to(tl.float16), mask=inside)


def hash_encoding(
    point: torch.Tensor, table: torch.Tensor, resolution: torch.Tensor
) -> torch.Tensor:
    """Features of point, float32[points, 3]; rows of point and table may be padded."""
    points = point.shape[0]
    levels, size, _ = table.shape
    out = torch.empty((points, 2 * levels), dtype=table.dtype, device=table.device)
    encode_kernel[(triton.cdiv(points, 256), levels)](
        point,
        table,
        resolution,
        out,
        point.stride(0),
        table.stride(1),
        points,
        levels,
        size,
        BLOCK=256,
    )
    return out
