"""Deformable attention: one program a head of one query, a sample after the other."""

import torch
import triton
import triton.language as tl


@triton.jit
def corner(value_ptr, row, col, rows, cols, value_row):
    """Loads one pixel of a level, zero outside of it."""
    inside = (row >= 0) & (row < rows) & (col >= 0) & (col < cols)
    at = (row * cols + col) * value_row + tl.arange(0, 32)
    return tl.load(value_ptr + at, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def deformable_kernel(
    value_ptr,
    place_ptr,
    weight_ptr,
    out_ptr,
    value_batch,
    value_row,
    value_head,
    place_batch,
    place_query,
    place_head,
    place_level,
    place_point,
    weight_batch,
    weight_query,
    weight_head,
    weight_level,
    heads,
    points,
    height,
    width,
):
    """Sums the bilinear samples of all levels and points."""
    batch = tl.program_id(0).to(tl.int64)
    query = tl.program_id(1).to(tl.int64)
    head = tl.program_id(2)
    value_base = value_ptr + batch * value_batch + head * value_head
    place_base = place_ptr + batch * place_batch + query * place_query + head * place_head
    weight_base = weight_ptr + batch * weight_batch + query * weight_query + head * weight_head
    total = tl.zeros([32], tl.float32)
    for level in range(0, 4):
        rows = (height + (1 << level) - 1) >> level
        cols = (width + (1 << level) - 1) >> level
        for point in range(0, points):
            place_at = place_base + level * place_level + point * place_point
            x = tl.load(place_at) * cols - 0.5
            y = tl.load(place_at + 1) * rows - 0.5
            left = tl.floor(x)
            above = tl.floor(y)
            right_share = x - left
            below_share = y - above
            row = above.to(tl.int32)
            col = left.to(tl.int32)
            upper = corner(value_base, row, col, rows, cols, value_row) * (1 - right_share)
            upper += corner(value_base, row, col + 1, rows, cols, value_row) * right_share
            lower = corner(value_base, row + 1, col, rows, cols, value_row) * (1 - right_share)
            lower += corner(value_base, row + 1, col + 1, rows, cols, value_row) * right_share
            sample = upper * (1 - below_share) + lower * below_share
            total += sample * tl.load(weight_base + level * weight_level + point)
        value_base += rows * cols * value_row
    at = ((batch * tl.num_programs(1) + query) * heads + head) * 32 + tl.arange(0, 32)
    tl.store(out_ptr + at, total.to(tl.float16))


def deformable_attention(
    value: torch.Tensor, place: torch.Tensor, weight: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    """Samples of value, float16[batch, positions, heads, 32], with any outer strides."""
    batch, queries, heads, _, points, _ = place.shape
    out = torch.empty((batch, queries, heads * 32), dtype=value.dtype, device=value.device)
    deformable_kernel[(batch, queries, heads)](
        value,
        place,
        weight,
        out,
        *value.stride()[:3],
        *place.stride()[:5],
        *weight.stride()[:4],
        heads,
        points,
        height,
        width,
        num_warps=1,
    )
    return out
