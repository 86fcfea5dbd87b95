"""8-bit Adam: one program a block of 256 parameters."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def adam8bit_kernel(
    param_ptr,
    grad_ptr,
    m_code_ptr,
    m_scale_ptr,
    v_code_ptr,
    v_scale_ptr,
    new_param_ptr,
    new_m_code_ptr,
    new_m_scale_ptr,
    new_v_code_ptr,
    new_v_scale_ptr,
    m_row,
    v_row,
    lr,
    beta1,
    beta2,
    eps,
    decay,
    correction1,
    correction2,
):
    """Updates one block."""
    block = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, 256)
    at = block * 256 + lane
    grad = tl.load(grad_ptr + at)
    param = tl.load(param_ptr + at)
    m = (
        tl.load(m_code_ptr + block * m_row + lane).to(tl.float32)
        / 127.0
        * tl.load(m_scale_ptr + block)
    )
    root = tl.load(v_code_ptr + block * v_row + lane).to(tl.float32) / 255.0
    m = beta1 * m + (1.0 - beta1) * grad
    v = beta2 * root * root * tl.load(v_scale_ptr + block) + (1.0 - beta2) * grad * grad
    update = m / correction1 / (tl.sqrt(v / correction2) + eps)
    tl.store(new_param_ptr + at, param - lr * (update + decay * param))
    m_scale = tl.maximum(tl.max(tl.abs(m), axis=0), 1e-30)
    v_scale = tl.maximum(tl.max(v, axis=0), 1e-30)
    tl.store(new_m_scale_ptr + block, m_scale)
    tl.store(new_v_scale_ptr + block, v_scale)
    tl.store(new_m_code_ptr + at, libdevice.nearbyint(127.0 * (m / m_scale)).to(tl.int8))
    v_code = libdevice.nearbyint(255.0 * tl.sqrt(v / v_scale)).to(tl.int32)
    tl.store(new_v_code_ptr + at, v_code.to(tl.uint8))


def adam8bit_step(
    param: torch.Tensor,
    grad: torch.Tensor,
    m_code: torch.Tensor,
    m_scale: torch.Tensor,
    v_code: torch.Tensor,
    v_scale: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    step: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """New param, codes and scales; rows of the codes may be padded."""
    blocks = m_code.shape[0]
    new_param = torch.empty_like(param)
    new_m = torch.empty((blocks, 256), dtype=torch.int8, device=param.device)
    new_v = torch.empty((blocks, 256), dtype=torch.uint8, device=param.device)
    new_m_scale = torch.empty((blocks,), dtype=torch.float32, device=param.device)
    new_v_scale = torch.empty((blocks,), dtype=torch.float32, device=param.device)
    adam8bit_kernel[(blocks,)](
        param,
        grad,
        m_code,
        m_scale,
        v_code,
        v_scale,
        new_param,
        new_m,
        new_m_scale,
        new_v,
        new_v_scale,
        m_code.stride(0),
        v_code.stride(0),
        lr,
        beta1,
        beta2,
        eps,
        decay,
        1 - beta1**step,
        1 - beta2**step,
    )
    return new_param, new_m, new_m_scale, new_v, new_v_scale
