"""Splits tensors into the contiguous pieces by which a driver fills and copies."""

from __future__ import annotations

import itertools
import math
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
    if 0 in views[0].shape:
        return
    width, axes = ELEMENT_BYTES[views[0].dtype], axes_of(*views)
    size = axes.pop()[0] if _is_contiguous(axes) else 1
    if (count := count_of_pieces(*views)) > MAX_PIECES:
        raise TooManyPiecesError(f"a tensor in {count} pieces, expected at most {MAX_PIECES}")
    for place in itertools.product(*(range(axis[0]) for axis in axes)):
        steps = (
            sum(i * axis[1 + number] for i, axis in zip(place, axes, strict=True))
            for number in range(len(views))
        )
        offsets = (view.offset + step * width for view, step in zip(views, steps, strict=True))
        yield (size * width, *offsets)


def count_of_pieces(*views: BufferView) -> int:
    """Returns in how many pieces `pieces` splits tensors of one shape and type."""
    axes = axes_of(*views)
    return math.prod(axis[0] for axis in (axes[:-1] if _is_contiguous(axes) else axes))


def axes_of(*views: BufferView) -> list[tuple[int, ...]]:
    """Returns the axes of tensors of one shape: size, and the stride of each in elements.

    Neighbours that lie together in all tensors are one axis.
    """
    axes: list[tuple[int, ...]] = []
    for number, size in enumerate(views[0].shape):
        axis = (size, *(view.strides[number] for view in views))
        if size == 1:
            continue
        if axes and all(
            outer == size * inner for outer, inner in zip(axes[-1][1:], axis[1:], strict=True)
        ):
            axis = (axes.pop()[0] * size, *axis[1:])
        axes.append(axis)
    return axes


def _is_contiguous(axes: list[tuple[int, ...]]) -> bool:
    return bool(axes) and all(stride == 1 for stride in axes[-1][1:])
