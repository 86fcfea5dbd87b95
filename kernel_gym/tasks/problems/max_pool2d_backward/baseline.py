"""Max pooling backward: each pixel looks at the windows that cover it."""

import torch
import triton
import triton.language as tl


@triton.jit
def max_pool2d_backward_kernel(
    grad_ptr,
    index_ptr,
    dx_ptr,
    grad_row,
    index_row,
    rows,
    cols,
    height,
    width,
    pad,
    count,
    stride,
    WINDOW: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Gathers the gradients of BLOCK pixels of all planes."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    plane = at // (height * width)
    pixel = at % (height * width)
    y = pixel // width + pad
    x = pixel % width + pad
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(WINDOW):
        for j in range(WINDOW):
            top = y - i
            left = x - j
            row = top // stride
            col = left // stride
            hit = (
                (at < count) & (top >= 0) & (left >= 0) & (top % stride == 0) & (left % stride == 0)
            )
            hit = hit & (row < rows) & (col < cols)
            source = plane * rows + row
            index = tl.load(index_ptr + source * index_row + col, mask=hit, other=-1)
            grad = tl.load(grad_ptr + source * grad_row + col, mask=hit, other=0.0)
            total += tl.where(index == pixel, grad.to(tl.float32), 0.0)
    tl.store(dx_ptr + at, total.to(tl.float16), mask=at < count)


def max_pool2d_backward(
    grad: torch.Tensor, index: torch.Tensor, height: int, width: int, window: int, stride: int
) -> torch.Tensor:
    """Gradient for grad and index, [batch, channels, rows, cols], whose rows may be padded."""
    batch, channels, rows, cols = grad.shape
    dx = torch.empty((batch, channels, height, width), dtype=grad.dtype, device=grad.device)
    count = batch * channels * height * width
    max_pool2d_backward_kernel[(triton.cdiv(count, 256),)](
        grad,
        index,
        dx,
        grad.stride(2),
        index.stride(2),
        rows,
        cols,
        height,
        width,
        window // 2,
        count,
        stride,
        WINDOW=window,
        BLOCK=256,
    )
    return dx
