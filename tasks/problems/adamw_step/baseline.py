"""AdamW: one program updates a short strip of one row."""

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
    param_stride,
    grad_stride,
    m_stride,
    v_stride,
    cols,
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
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < cols
    param = tl.load(param_ptr + row * param_stride + at, mask=inside, other=0.0)
    grad = tl.load(grad_ptr + row * grad_stride + at, mask=inside, other=0.0)
    m = tl.load(m_ptr + row * m_stride + at, mask=inside, other=0.0)
    v = tl.load(v_ptr + row * v_stride + at, mask=inside, other=0.0)
    m = beta1 * m + (1.0 - beta1) * grad
    v = beta2 * v + (1.0 - beta2) * grad * grad
    update = (m / correction1) / (tl.sqrt(v / correction2) + eps)
    param = param - lr * decay * param - lr * update
    out = row * cols + at
    tl.store(new_param_ptr + out, param, mask=inside)
    tl.store(new_m_ptr + out, m, mask=inside)
    tl.store(new_v_ptr + out, v, mask=inside)


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
    """New param, m and v, float32[rows, cols], from ones with any row strides."""
    rows, cols = param.shape
    outputs = [torch.empty((rows, cols), dtype=param.dtype, device=param.device) for _ in range(3)]
    block = 256
    adamw_kernel[(rows, triton.cdiv(cols, block))](
        param,
        grad,
        m,
        v,
        *outputs,
        param.stride(0),
        grad.stride(0),
        m.stride(0),
        v.stride(0),
        cols,
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
