import torch


def add_rms_norm(x, residual, weight, eps):
    total = x + residual
    wide = total.float()
    scale = torch.rsqrt(wide.pow(2).mean(1, keepdim=True) + eps)
    return (wide * scale).half() * weight, total
