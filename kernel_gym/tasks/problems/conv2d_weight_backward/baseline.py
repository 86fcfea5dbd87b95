"""Gradient of filters: one program a tile of filters by channels of one tap, over all pixels."""

import torch
import triton
import triton.language as tl


@triton.jit
def weight_kernel(
    grad_ptr,
    x_ptr,
    out_ptr,
    grad_row,
    x_row,
    batch,
    channels,
    filters,
    height,
    width,
    TILE: tl.constexpr,
):
    """Computes TILE filters by TILE channels of one tap."""
    filter_at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    channel = tl.program_id(1) * TILE + tl.arange(0, TILE)
    tap = tl.program_id(2)
    area = height * width
    total = tl.zeros([TILE, TILE], tl.float32)
    for b in range(0, batch):
        part = tl.zeros([TILE, TILE], tl.float32)
        for start in range(0, area, TILE):
            pixel = start + tl.arange(0, TILE)
            row = pixel // width
            col = pixel % width
            up = row + tap // 3 - 1
            left = col + tap % 3 - 1
            plane = (b.to(tl.int64) * filters + filter_at[:, None]) * height
            grad = tl.load(
                grad_ptr + (plane + row[None, :]) * grad_row + col[None, :],
                mask=(filter_at[:, None] < filters) & (pixel[None, :] < area),
                other=0.0,
            )
            inside = (up >= 0) & (up < height) & (left >= 0) & (left < width) & (pixel < area)
            image = (b.to(tl.int64) * channels + channel[None, :]) * height
            x = tl.load(
                x_ptr + (image + up[:, None]) * x_row + left[:, None],
                mask=inside[:, None] & (channel[None, :] < channels),
                other=0.0,
            )
            part = tl.dot(grad, x, part)
        total += part
    at = (filter_at[:, None] * channels + channel[None, :]) * 9 + tap
    inside = (filter_at[:, None] < filters) & (channel[None, :] < channels)
    tl.store(out_ptr + at, total.to(tl.float16), mask=inside)


def conv2d_weight_backward(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Gradient from grad and x, float16 images whose rows may be padded."""
    batch, channels, height, width = x.shape
    filters = grad.shape[1]
    out = torch.empty((filters, channels, 3, 3), dtype=x.dtype, device=x.device)
    weight_kernel[(triton.cdiv(filters, 32), triton.cdiv(channels, 32), 9)](
        grad,
        x,
        out,
        grad.stride(2),
        x.stride(2),
        batch,
        channels,
        filters,
        height,
        width,
        TILE=32,
    )
    return out
