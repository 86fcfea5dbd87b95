"""Lion: one program updates a short strip."""

import torch
import triton
import triton.language as tl


@triton.jit
def lion_kernel(
    param_ptr,
    grad_ptr,
    m_ptr,
    new_param_ptr,
    new_m_ptr,
    count,
    lr,
    beta1,
    beta2,
    decay,
    BLOCK: tl.constexpr,
):
    """Updates BLOCK parameters and their means."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    param = tl.load(param_ptr + at, mask=inside, other=0.0)
    grad = tl.load(grad_ptr + at, mask=inside, other=0.0)
    m = tl.load(m_ptr + at, mask=inside, other=0.0)
    ahead = beta1 * m + (1.0 - beta1) * grad
    sign = tl.where(ahead > 0.0, 1.0, tl.where(ahead < 0.0, -1.0, 0.0))
    tl.store(new_param_ptr + at, param - lr * decay * param - lr * sign, mask=inside)
    tl.store(new_m_ptr + at, beta2 * m + (1.0 - beta2) * grad, mask=inside)


def lion_step(
    param: torch.Tensor,
    grad: torch.Tensor,
    m: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    decay: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """New param and m, float32[count]."""
    count = param.shape[0]
    new_param, new_m = torch.empty_like(param), torch.empty_like(m)
    block = 128
    lion_kernel[(triton.cdiv(count, block),)](
        param, grad, m, new_param, new_m, count, lr, beta1, beta2, decay, BLOCK=block, num_warps=2
    )
    return new_param, new_m
