"""Mixture of experts: products by expert for gate and up, then down, then a sum over choices."""

import torch
import triton
import triton.language as tl


@triton.jit
def gate_up_kernel(
    x_ptr,
    gate_ptr,
    up_ptr,
    order_ptr,
    start_ptr,
    mid_ptr,
    x_row,
    gate_row,
    up_row,
    top_k,
    hidden,
    inner,
    TILE: tl.constexpr,
):
    """Computes tiles of the inner activation of one expert's choices."""
    expert = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    first = tl.load(start_ptr + expert)
    last = tl.load(start_ptr + expert + 1)
    for block in range(first, last, TILE):
        at = block + tl.arange(0, TILE)
        token = tl.load(order_ptr + at, mask=at < last, other=0) // top_k
        gate = tl.zeros([TILE, TILE], tl.float32)
        up = tl.zeros([TILE, TILE], tl.float32)
        for k in range(0, hidden, 32):
            part = k + tl.arange(0, 32)
            x = tl.load(
                x_ptr + token[:, None] * x_row + part[None, :], mask=at[:, None] < last, other=0.0
            )
            w_at = expert * inner + cols[None, :]
            g = tl.load(
                gate_ptr + w_at * gate_row + part[:, None], mask=cols[None, :] < inner, other=0.0
            )
            u = tl.load(
                up_ptr + w_at * up_row + part[:, None], mask=cols[None, :] < inner, other=0.0
            )
            gate = tl.dot(x, g, gate)
            up = tl.dot(x, u, up)
        mid = gate / (1.0 + tl.exp(-gate)) * up
        inside = (at[:, None] < last) & (cols[None, :] < inner)
        tl.store(
            mid_ptr + at[:, None].to(tl.int64) * inner + cols[None, :],
            mid.to(tl.bfloat16),
            mask=inside,
        )


@triton.jit
def down_kernel(
    mid_ptr, down_ptr, order_ptr, start_ptr, part_ptr, down_row, hidden, inner, TILE: tl.constexpr
):
    """Computes tiles of the results of one expert's choices."""
    expert = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    first = tl.load(start_ptr + expert)
    last = tl.load(start_ptr + expert + 1)
    for block in range(first, last, TILE):
        at = block + tl.arange(0, TILE)
        total = tl.zeros([TILE, TILE], tl.float32)
        for k in range(0, inner, 32):
            part = k + tl.arange(0, 32)
            mid = tl.load(
                mid_ptr + at[:, None].to(tl.int64) * inner + part[None, :],
                mask=at[:, None] < last,
                other=0.0,
            )
            w_at = (expert * hidden + cols[None, :]) * down_row + part[:, None]
            total = tl.dot(
                mid, tl.load(down_ptr + w_at, mask=cols[None, :] < hidden, other=0.0), total
            )
        choice = tl.load(order_ptr + at, mask=at < last, other=0).to(tl.int64)
        inside = (at[:, None] < last) & (cols[None, :] < hidden)
        tl.store(part_ptr + choice[:, None] * hidden + cols[None, :], total, mask=inside)


@triton.jit
def sum_kernel(part_ptr, weight_ptr, out_ptr, weight_row, top_k, hidden, BLOCK: tl.constexpr):
    """Adds up the choices of one token."""
    token = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(0, top_k):
        weight = tl.load(weight_ptr + token * weight_row + k)
        total += weight * tl.load(
            part_ptr + (token * top_k + k) * hidden + at, mask=at < hidden, other=0.0
        )
    tl.store(out_ptr + token * hidden + at, total.to(tl.bfloat16), mask=at < hidden)


def fused_moe(
    x: torch.Tensor,
    gate: torch.Tensor,
    up: torch.Tensor,
    down: torch.Tensor,
    weight: torch.Tensor,
    order: torch.Tensor,
    start: torch.Tensor,
) -> torch.Tensor:
    """Experts of x, bfloat16[tokens, hidden]; rows of all tensors may be padded."""
    tokens, hidden = x.shape
    experts, inner = gate.shape[:2]
    top_k = weight.shape[1]
    mid = torch.empty((tokens * top_k, inner), dtype=x.dtype, device=x.device)
    part = torch.empty((tokens * top_k, hidden), dtype=torch.float32, device=x.device)
    out = torch.empty((tokens, hidden), dtype=x.dtype, device=x.device)
    gate_up_kernel[(experts, triton.cdiv(inner, 32))](
        x,
        gate,
        up,
        order,
        start,
        mid,
        x.stride(0),
        gate.stride(1),
        up.stride(1),
        top_k,
        hidden,
        inner,
        TILE=32,
    )
    down_kernel[(experts, triton.cdiv(hidden, 32))](
        mid, down, order, start, part, down.stride(1), hidden, inner, TILE=32
    )
    sum_kernel[(tokens, triton.cdiv(hidden, 512))](
        part, weight, out, weight.stride(0), top_k, hidden, BLOCK=512
    )
    return out
