"""Cholesky by the textbook's sums, entry by entry."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 4, "n": 7}
BYTES = 4 * 4 * (28 + 49)


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """Each entry from those left of it and above it."""
    for a, ours in zip(inputs["a"], found[0], strict=True):
        factor = np.zeros((7, 7))
        for i in range(7):
            for j in range(i + 1):
                rest = a[i, j] - factor[i, :j] @ factor[j, :j]
                factor[i, j] = np.sqrt(rest) if i == j else rest / factor[j, j]
        np.testing.assert_allclose(ours, factor, rtol=1e-7, atol=1e-9 * np.abs(factor).max())
