"""The call of the backward kernel for the gradient of this operation."""

import torch


def arguments(
    grad: torch.Tensor, out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple:
    """Returns the arguments of the backward operator."""
    return grad.contiguous(), x, weight, eps


def gradients(results: tuple, x: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple:
    """Returns the gradient of each argument."""
    dx, dweight = results
    return dx, dweight.to(weight.dtype), None
