"""Matrix products whose result has another dtype than their arguments, on the simulated device.

PyTorch has them for GPUs alone (`torch.mm(a, b, out_dtype=torch.float32)`). Here the arguments are
converted before the product. A GPU multiplies them as they are and sums in the dtype of the result,
which has the same values up to the order of the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_NAMES = ("mm", "addmm", "bmm", "baddbmm")


def install() -> torch.library.Library:
    """Registers the operators for the device. They last as long as the result of this function."""
    library = torch.library.Library("aten", "IMPL")
    for name in _NAMES:
        compute = _product(getattr(torch, name))
        library.impl(f"{name}.dtype", compute, "CUDA")
        library.impl(f"{name}.dtype_out", _into(compute), "CUDA")
    return library


def _product(operator: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def compute(*values: Any, **scalars: Any) -> torch.Tensor:
        *tensors, dtype = values
        return operator(*(tensor.to(dtype) for tensor in tensors), **scalars)

    return compute


def _into(compute: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def compute_into(*values: object, out: torch.Tensor, **scalars: object) -> torch.Tensor:
        result = compute(*values, **scalars)
        return out.resize_(result.shape).copy_(result)

    return compute_into
