"""The call of the backward kernel for the gradient of this operation."""

import torch


def arguments(
    grad: torch.Tensor, out: torch.Tensor, table: torch.Tensor, ids: torch.Tensor
) -> tuple:
    """Returns the arguments of the backward operator. No row is left out as padding."""
    return grad.contiguous(), ids, table.shape[0], -1


def gradients(result: torch.Tensor, table: torch.Tensor, ids: torch.Tensor) -> tuple:
    """Returns the gradient of each argument."""
    return result.to(table.dtype), None
