"""Recorded inputs of workloads: tensors in safetensors files, as a way to draw values like them.

The values themselves are not used: a policy could know them, and other sizes need others. Ascending
offsets stay ascending, indices stay below the size that they index, real numbers keep mean and
spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import torch
from safetensors import SafetensorError
from safetensors.torch import load

from kernel_gym.imports.readers.base import CheckoutError, read_bytes
from kernel_gym.imports.readers.definitions import InputSource, TensorSpec


def recorded_tensor(checkout: Path, source: InputSource) -> torch.Tensor:
    """Returns a recorded tensor.

    Raises:
        CheckoutError: The file is missing, malformed, or has no such tensor.
    """
    path = _found(checkout, source.path)
    try:
        tensors = load(read_bytes(checkout, path))
    except SafetensorError as error:
        raise CheckoutError(f"{path}: found no safetensors file ({error})") from None
    if source.tensor_key not in tensors:
        raise CheckoutError(
            f"{path}: found the tensors {sorted(tensors)[:8]}, expected {source.tensor_key!r}"
        )
    return tensors[source.tensor_key]


def _found(checkout: Path, name: str) -> str:
    """Returns the path of a file; leading folders of the name may be missing in a checkout."""
    parts = PurePosixPath(name).parts
    for first in range(len(parts)):
        path = PurePosixPath(*parts[first:]).as_posix()
        if (checkout / path).is_file():
            return path
    raise CheckoutError(f"{name}: found no such file: fetch the recorded inputs (git lfs pull)")


def drawing_like(
    tensor: torch.Tensor, spec: TensorSpec, shape: Sequence[str], sizes: Mapping[str, int]
) -> str:
    """Returns an expression of PyTorch that draws values of the same class as a recorded tensor.

    Args:
        tensor: The recorded tensor.
        spec: What the definition says of the input.
        shape: The expression of each of its sizes.
        sizes: The axes of the workload.

    Raises:
        CheckoutError: Its shape is not the one that the definition says.
    """
    size = f"({', '.join(shape)}{',' * (len(shape) == 1)})"
    dtype = f"torch.{spec.dtype}"
    if spec.dtype == "bool":
        return f"torch.randint(0, 2, {size}, dtype={dtype})"
    if tensor.is_floating_point():
        wide = tensor.double()
        mean, spread = float(wide.mean()), float(wide.std(correction=0))
        return f"({mean!r} + {spread!r} * torch.randn{size}).to({dtype})"
    least, most = int(tensor.min()), int(tensor.max())
    ascending = tensor.dim() == 1 and bool((tensor[1:] >= tensor[:-1]).all())
    if ascending and least == 0 and len(tensor) > 1:
        total = _axis_of(most, sizes, equal=True)
        steps = f"({shape[0]} - 1)"
        return f"(torch.arange({shape[0]}) * ({total}) // {steps}).to({dtype})"
    high = _axis_of(most, sizes, equal=False) if least >= 0 else str(most + 1)
    return f"torch.randint({max(least, 0) if least >= 0 else least}, {high}, {size}, dtype={dtype})"


def _axis_of(most: int, sizes: Mapping[str, int], equal: bool) -> str:
    """Returns the axis that a largest value belongs to: equal to it, or the next larger one."""
    fitting = [n for n, size in sizes.items() if (size == most if equal else size > most)]
    return min(fitting, key=lambda name: sizes[name]) if fitting else str(most + (not equal))
