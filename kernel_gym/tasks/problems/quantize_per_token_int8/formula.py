"""Quantisation checked by what it must keep: the scale, and values within half a step."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 12, "cols": 37}


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """The largest magnitude has code 127, and no value moves by more than half a step."""
    q, scale = found
    x = inputs["x"]
    largest = np.maximum(np.abs(x).max(1), 1e-8)
    np.testing.assert_allclose(scale, largest / 127, rtol=1e-12)
    assert (np.abs(q).max(1) == np.where(np.abs(x).max(1) > 0, 127, 0)).all()
    assert (np.abs(q * scale[:, None] - x) <= scale[:, None] / 2 * (1 + 1e-9)).all()
