"""Values for tensors that `expand` has made: elements along such an axis share their memory."""

from __future__ import annotations

import torch


def assign(view: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Writes values to a tensor and returns it; of an expanded axis only the first values count.

    Args:
        view: A tensor of any strides. PyTorch refuses to write to one with a stride of 0.
        values: Values of the same shape.
    """
    first = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in view.stride())
    view[first].copy_(values[first])
    return view
