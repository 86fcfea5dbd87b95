"""Quantisation checked against the list of the format's values."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 3, "cols": 384}


def _values() -> np.ndarray:
    """Finite values of e4m3fnuz: bias 8, subnormals below 2^-7, the largest 240."""
    whole = [(1 + m / 8) * 2.0 ** (e - 8) for e in range(1, 16) for m in range(8)]
    return np.array(sorted([m / 8 * 2.0**-7 for m in range(8)] + whole))


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """Each code is a nearest value of the format."""
    q, scale = found
    groups = inputs["x"].reshape(len(q), -1, 128)
    largest = np.maximum(np.abs(groups).max(2), 1e-10)
    np.testing.assert_allclose(scale, largest / 240, rtol=1e-12)
    wanted = np.abs(groups / scale[:, :, None]).reshape(q.shape)
    values = _values()
    assert values[-1] == 240
    assert np.isin(np.abs(q), values).all()
    nearest = np.abs(wanted[..., None] - values).min(-1)
    assert (np.abs(np.abs(q) - wanted) <= nearest + 1e-4 * wanted).all()
    assert (q * inputs["x"] >= 0).all()
