"""Addition and norm by their definition; codes by what they must keep."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 5, "cols": 33}


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """No value moves by more than half a step; the largest has code 127 in rows above the floor."""
    q, scale, total = found
    h = inputs["x"] + inputs["residual"]
    np.testing.assert_allclose(total, h, rtol=1e-12)
    root = np.sqrt((h * h).sum(1, keepdims=True) / h.shape[1] + inputs["eps"])
    y = h / root * inputs["weight"]
    most = np.abs(y).max(1)
    np.testing.assert_allclose(scale, np.maximum(most, 1e-8) / 127, rtol=1e-9)
    assert (np.abs(q).max(1)[most > 1e-8] == 127).all()
    assert (np.abs(q * scale[:, None] - y) <= scale[:, None] / 2 * (1 + 1e-9)).all()
