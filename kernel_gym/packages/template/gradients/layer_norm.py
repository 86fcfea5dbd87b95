"""The call of the backward kernel for the gradient of this operation."""

import torch


def arguments(
    grad: torch.Tensor,
    out: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float,
) -> tuple:
    """Returns the arguments of the backward operator. Means and scales are computed again."""
    variance, mean = torch.var_mean(x.float(), dim=1, correction=0)
    return grad.contiguous(), x, mean, torch.rsqrt(variance + eps), weight


def gradients(
    results: tuple, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> tuple:
    """Returns the gradient of each argument."""
    return *results, None
