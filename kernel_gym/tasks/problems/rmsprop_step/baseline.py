"""RMSprop: one program updates a short strip."""

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
    count,
    lr,
    alpha,
    eps,
    momentum,
    BLOCK: tl.constexpr,
):
    """Updates BLOCK parameters."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    param = tl.load(param_ptr + at, mask=inside, other=0.0)
    grad = tl.load(grad_ptr + at, mask=inside, other=0.0)
    square = tl.load(square_ptr + at, mask=inside, other=0.0)
    buffer = tl.load(buffer_ptr + at, mask=inside, other=0.0)
    square = alpha * square + (1.0 - alpha) * grad * grad
    buffer = momentum * buffer + grad / tl.sqrt(square + eps)
    tl.store(new_param_ptr + at, param - lr * buffer, mask=inside)
    tl.store(new_square_ptr + at, square, mask=inside)
    tl.store(new_buffer_ptr + at, buffer, mask=inside)


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
    """New param, square and buffer, float32[count]."""
    count = param.shape[0]
    outputs = [torch.empty_like(param) for _ in range(3)]
    block = 128
    rmsprop_kernel[(triton.cdiv(count, block),)](
        param,
        grad,
        square,
        buffer,
        *outputs,
        count,
        lr,
        alpha,
        eps,
        momentum,
        BLOCK=block,
    )
    return tuple(outputs)
