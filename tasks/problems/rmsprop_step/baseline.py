"""RMSprop: one program updates a short strip of one row."""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsprop_kernel(
    param_ptr,
    grad_ptr,
    square_ptr,
    buffer_ptr,
    new_param_ptr,
    new_square_ptr,
    new_buffer_ptr,
    param_stride,
    grad_stride,
    square_stride,
    buffer_stride,
    cols,
    lr,
    alpha,
    eps,
    momentum,
    BLOCK: tl.constexpr,
):
    """Updates BLOCK parameters."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < cols
    param = tl.load(param_ptr + row * param_stride + at, mask=inside, other=0.0)
    grad = tl.load(grad_ptr + row * grad_stride + at, mask=inside, other=0.0)
    square = tl.load(square_ptr + row * square_stride + at, mask=inside, other=0.0)
    buffer = tl.load(buffer_ptr + row * buffer_stride + at, mask=inside, other=0.0)
    square = alpha * square + (1.0 - alpha) * grad * grad
    buffer = momentum * buffer + grad / tl.sqrt(square + eps)
    out = row * cols + at
    tl.store(new_param_ptr + out, param - lr * buffer, mask=inside)
    tl.store(new_square_ptr + out, square, mask=inside)
    tl.store(new_buffer_ptr + out, buffer, mask=inside)


def rmsprop_step(
    param: torch.Tensor,
    grad: torch.Tensor,
    square: torch.Tensor,
    buffer: torch.Tensor,
    lr: float,
    alpha: float,
    eps: float,
    momentum: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """New param, square and buffer, float32[rows, cols], from ones with any row strides."""
    rows, cols = param.shape
    outputs = [torch.empty((rows, cols), dtype=param.dtype, device=param.device) for _ in range(3)]
    block = 128
    rmsprop_kernel[(rows, triton.cdiv(cols, block))](
        param,
        grad,
        square,
        buffer,
        *outputs,
        param.stride(0),
        grad.stride(0),
        square.stride(0),
        buffer.stride(0),
        cols,
        lr,
        alpha,
        eps,
        momentum,
        BLOCK=block,
    )
    return tuple(outputs)
