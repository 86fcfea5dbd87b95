"""Splits tensors into the contiguous pieces by which a driver fills and copies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from kernel_gym.plans.types import ELEMENT_BYTES, BufferView

MAX_PIECES = 1 << 12
"""Most pieces of a fill or a copy."""


class TooManyPiecesError(Exception):
    """A fill or a copy has too many pieces for a driver. The text says how many."""


def pieces(*views: BufferView) -> Iterator[tuple[int, ...]]:
    """Yields the pieces of tensors of one shape and type.

    Args:
        views: One tensor, or two that are copied.

    Yields:
        The bytes of a piece, then its offset in the buffer of each tensor.

    Raises:
        TooManyPiecesError: There are more than `MAX_PIECES`.
    """
    width = ELEMENT_BYTES[views[0].dtype]
    axes = [(n, *(v.strides[i] for v in views)) for i, n in enumerate(views[0].shape) if n != 1]
    if 0 in views[0].shape:
        return
    size = 1
    while axes and all(stride == size for stride in axes[-1][1:]):
        size *= axes.pop()[0]
    count = 1
    for axis in axes:
        count *= axis[0]
    if count > MAX_PIECES:
        raise TooManyPiecesError(f"a tensor in {count} pieces, expected at most {MAX_PIECES}")
    for place in itertools.product(*(range(axis[0]) for axis in axes)):
        steps = (
            sum(i * axis[1 + number] for i, axis in zip(place, axes, strict=True))
            for number in range(len(views))
        )
        offsets = (view.offset + step * width for view, step in zip(views, steps, strict=True))
        yield (size * width, *offsets)
