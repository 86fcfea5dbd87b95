"""Names of the judge's tensors in messages of the simulated GPU, with the size of their rows.

A message such as "2048 bytes into output 'out' with rows of 2048 bytes" shows that a write is one
element beyond its row.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch


def tensor_label(what: str, name: str, tensor: torch.Tensor) -> str:
    """Returns the name of a tensor's memory, such as `input 'x' with rows of 2048 bytes`."""
    return labelled(what, name, row_bytes(tensor.shape, tensor.stride(), tensor.itemsize))


def labelled(what: str, name: str, row: int) -> str:
    """Returns a name. `row` is the distance of two rows in bytes, 0 where there are no rows."""
    return f"{what} {name!r} with rows of {row} bytes" if row else f"{what} {name!r}"


def row_bytes(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """The distance of two rows in bytes; 0 for fewer than two axes or rows that are no rows."""
    if len(shape) < 2 or strides[-1] != 1 or shape[-1] < 2:
        return 0
    return strides[-2] * itemsize
