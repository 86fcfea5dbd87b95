"""Quantisation checked against the list of the format's values."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 3, "cols": 384}


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """Finite values of e4m3fnuz: bias 8, subnormals below 2^-7, the largest 240."""
    whole = [(1 + m / 8) * 2.0 ** (e - 8) for e in range(1, 16) for m in range(8)]
    values = np.array([*(m / 8 * 2.0**-7 for m in range(8)), *whole])
    assert values[-1] == 240
    check_against(values, found, inputs)


def check_against(
    values: np.ndarray, found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]
) -> None:
    """Each code is a nearest one of the format's values, which are given in order."""
    q, scale = found
    groups = inputs["x"].reshape(len(q), -1, 128)
    largest = np.maximum(np.abs(groups).max(2), 1e-10)
    np.testing.assert_allclose(scale, largest / values[-1], rtol=1e-12)
    wanted = np.abs(groups / scale[:, :, None]).reshape(q.shape)
    assert np.isin(np.abs(q), values).all()
    nearest = np.abs(wanted[..., None] - values).min(-1)
    assert (np.abs(np.abs(q) - wanted) <= nearest + 1e-4 * wanted).all()
    assert (q * inputs["x"] >= 0).all()
