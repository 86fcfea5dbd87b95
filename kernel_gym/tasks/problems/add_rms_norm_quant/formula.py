"""Addition and norm by their definition; codes by what they must keep."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 5, "cols": 33}


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """No value moves by more than half a step, and the largest has code 127."""
    q, scale, total = found
    h = inputs["x"] + inputs["residual"]
    np.testing.assert_allclose(total, h, rtol=1e-12)
    root = np.sqrt((h * h).sum(1, keepdims=True) / h.shape[1] + inputs["eps"])
    y = h / root * inputs["weight"]
    np.testing.assert_allclose(scale, np.abs(y).max(1) / 127, rtol=1e-9)
    assert (np.abs(q).max(1) == 127).all()
    assert (np.abs(q * scale[:, None] - y) <= scale[:, None] / 2 * (1 + 1e-9)).all()
