"""The product as an index sum."""

from __future__ import annotations

import numpy as np

SMALL = {"m": 7, "n": 5, "k": 11}
FLOPS = 7 * 5 * 11 * 2


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """Sums over the shared index."""
    expected = np.einsum("ik,kj->ij", inputs["a"], inputs["b"])
    np.testing.assert_allclose(found[0], expected, rtol=1e-9, atol=1e-12)
