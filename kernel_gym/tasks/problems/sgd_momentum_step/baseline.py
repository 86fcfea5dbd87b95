"""SGD with Nesterov momentum: one program updates a short strip in place."""

import torch
import triton
import triton.language as tl


@triton.jit
def sgd_momentum_kernel(
    param_ptr, grad_ptr, velocity_ptr, count, lr, momentum, decay, BLOCK: tl.constexpr
):
    """Updates BLOCK parameters and their velocities."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    param = tl.load(param_ptr + at, mask=inside, other=0.0)
    grad = tl.load(grad_ptr + at, mask=inside, other=0.0)
    velocity = tl.load(velocity_ptr + at, mask=inside, other=0.0)
    d = grad + decay * param
    velocity = momentum * velocity + d
    tl.store(param_ptr + at, param - lr * (d + momentum * velocity), mask=inside)
    tl.store(velocity_ptr + at, velocity, mask=inside)


def sgd_momentum_step(
    param: torch.Tensor,
    grad: torch.Tensor,
    velocity: torch.Tensor,
    lr: float,
    momentum: float,
    decay: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Updates param and velocity, float32[count], and returns them."""
    count = param.shape[0]
    block = 128
    sgd_momentum_kernel[(triton.cdiv(count, block),)](
        param, grad, velocity, count, lr, momentum, decay, BLOCK=block
    )
    return param, velocity
