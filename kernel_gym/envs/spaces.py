"""Spaces for source code and other texts."""

from __future__ import annotations

import string

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from kernel_gym.judge.protocol import MAX_SOURCE_BYTES

MAX_SOURCE_CHARS = MAX_SOURCE_BYTES
"""Longest text. A source with more bytes is always refused, and other texts are much shorter."""
MAX_SAMPLE_CHARS = 1024
"""Longest text that :meth:`SourceText.sample` draws."""


class SourceText(spaces.Text):
    """All texts up to a length.

    `gymnasium.spaces.Text` allows only the characters of its charset, but sources and compiler
    messages may have any. This space contains every string of legal length, and samples short
    printable ones.

    Example:
        >>> space = SourceText(100)
        >>> space.contains("naïve ∑ = 0")
        True
        >>> space.contains("x" * 101)
        False
    """

    def __init__(self, max_length: int = MAX_SOURCE_CHARS, *, seed: int | None = None) -> None:
        """Sets the length.

        Args:
            max_length: Longest text in characters, inclusive.
            seed: Seed of sampling.
        """
        super().__init__(max_length, min_length=0, charset=string.printable, seed=seed)

    def contains(self, x: object) -> bool:
        """Whether x is a string of legal length."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(
        self,
        mask: tuple[int | None, npt.NDArray[np.int8] | None] | None = None,
        probability: tuple[int | None, npt.NDArray[np.float64] | None] | None = None,
    ) -> str:
        """Draws printable text, at most 1024 characters unless a mask asks for another length."""
        if mask is None and probability is None:
            longest = min(self.max_length, MAX_SAMPLE_CHARS)
            mask = (int(self.np_random.integers(longest + 1)), None)
        return super().sample(mask, probability)

    def __repr__(self) -> str:
        return f"SourceText({self.max_length})"

    def __eq__(self, other: object, /) -> bool:
        return isinstance(other, SourceText) and self.max_length == other.max_length

    def __hash__(self) -> int:
        return hash((SourceText, self.max_length))
