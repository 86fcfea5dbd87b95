"""Grouped convolution: one program a strip of outputs of one filter."""

import torch
import triton
import triton.language as tl


@triton.jit
def grouped_conv2d_kernel(
    x_ptr,
    weight_ptr,
    out_ptr,
    x_row,
    weight_row,
    channels,
    filters,
    groups,
    height,
    width,
    out_width,
    count,
    window,
    stride,
    dilation,
    BLOCK: tl.constexpr,
):
    """Computes BLOCK outputs of one filter of one image."""
    plane = tl.program_id(0).to(tl.int64)
    filter_at = plane % (groups * filters)
    batch = plane // (groups * filters)
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    y = pixel // out_width * stride - window // 2 * dilation
    x = pixel % out_width * stride - window // 2 * dilation
    first = (batch * groups + filter_at // filters) * channels
    total = tl.zeros([BLOCK], tl.float32)
    for c in range(0, channels):
        for i in range(0, window):
            row = y + i * dilation
            for j in range(0, window):
                col = x + j * dilation
                inside = (row >= 0) & (row < height) & (col >= 0) & (col < width)
                tap = tl.load(
                    weight_ptr + ((filter_at * channels + c) * window + i) * weight_row + j
                )
                value = tl.load(
                    x_ptr + ((first + c) * height + row) * x_row + col,
                    mask=inside & (pixel < count),
                    other=0.0,
                )
                total += tap.to(tl.float32) * value.to(tl.float32)
    tl.store(out_ptr + plane * count + pixel, total.to(tl.float16), mask=pixel < count)


def grouped_conv2d(
    x: torch.Tensor, weight: torch.Tensor, groups: int, stride: int, dilation: int
) -> torch.Tensor:
    """Convolves x, float16[batch, groups * channels, height, width], whose rows may be padded."""
    batch, _, height, width = x.shape
    filters, channels, window, _ = weight.shape
    rows, cols = (height - 1) // stride + 1, (width - 1) // stride + 1
    out = torch.empty((batch, filters, rows, cols), dtype=x.dtype, device=x.device)
    grouped_conv2d_kernel[(batch * filters, triton.cdiv(rows * cols, 256))](
        x,
        weight,
        out,
        x.stride(2),
        weight.stride(2),
        channels,
        filters // groups,
        groups,
        height,
        width,
        cols,
        rows * cols,
        window,
        stride,
        dilation,
        BLOCK=256,
    )
    return out
