"""Rotation by row and column as products of complex numbers."""

import numpy as np

SMALL = {"tokens": 3, "heads": 2, "head_dim": 16}


def formula(x: np.ndarray, place: np.ndarray, pitch: np.ndarray) -> tuple[np.ndarray, ...]:
    """Each pair is a complex number that is turned by its token's row or column."""
    half = x.shape[2] // 2
    pair = x[:, :, :half] + 1j * x[:, :, half:]
    turn = np.concatenate([np.exp(1j * np.outer(way, pitch)) for way in place.T], axis=1)
    turned = pair * turn[:, None]
    return (np.concatenate([turned.real, turned.imag], axis=2),)
