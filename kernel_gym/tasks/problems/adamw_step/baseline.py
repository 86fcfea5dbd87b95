"""AdamW: one program updates a short strip."""

import torch
import triton
import triton.language as tl


@triton.jit
def adamw_kernel(
    param_ptr,
    grad_ptr,
    m_ptr,
    v_ptr,
    new_param_ptr,
    new_m_ptr,
    new_v_ptr,
    count,
    lr,
    beta1,
    beta2,
    eps,
    decay,
    correction1,
    correction2,
    BLOCK: tl.constexpr,
):
    """Updates BLOCK parameters."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    param = tl.load(param_ptr + at, mask=inside, other=0.0)
    grad = tl.load(grad_ptr + at, mask=inside, other=0.0)
    m = tl.load(m_ptr + at, mask=inside, other=0.0)
    v = tl.load(v_ptr + at, mask=inside, other=0.0)
    m = beta1 * m + (1.0 - beta1) * grad
    v = beta2 * v + (1.0 - beta2) * grad * grad
    update = (m / correction1) / (tl.sqrt(v / correction2) + eps)
    param = param - lr * decay * param - lr * update
    tl.store(new_param_ptr + at, param, mask=inside)
    tl.store(new_m_ptr + at, m, mask=inside)
    tl.store(new_v_ptr + at, v, mask=inside)


def adamw_step(
    param: torch.Tensor,
    grad: torch.Tensor,
    m: torch.Tensor,
    v: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    step: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """New param, m and v, float32[count]."""
    count = param.shape[0]
    outputs = [torch.empty_like(param) for _ in range(3)]
    block = 256
    adamw_kernel[(triton.cdiv(count, block),)](
        param,
        grad,
        m,
        v,
        *outputs,
        count,
        lr,
        beta1,
        beta2,
        eps,
        decay,
        1 - beta1**step,
        1 - beta2**step,
        BLOCK=block,
    )
    return tuple(outputs)
