"""Spherical harmonics by Legendre functions of scipy; the polar axis is y."""

from __future__ import annotations

import numpy as np
from scipy.special import sph_harm_y

SMALL = {"edges": 11}


def formula(vector: np.ndarray, eps: float) -> tuple[np.ndarray, ...]:
    """Lengths below one scale the harmonics of degree l by the length to the power l."""
    length = np.sqrt((vector**2).sum(1))
    size = length / (length + eps)
    polar = np.arccos(np.clip(vector[:, 1] / np.where(length > 0, length, 1), -1, 1))
    around = np.arctan2(vector[:, 0], vector[:, 2])
    out = []
    for degree in range(3):
        for order in range(-degree, degree + 1):
            y = sph_harm_y(degree, abs(order), polar, around) * (4 * np.pi) ** 0.5
            part = y.real if order >= 0 else y.imag
            sign = (-1) ** order * (2**0.5 if order else 1)
            out.append(np.where(length > 0, sign * part, degree == 0) * size**degree)
    return (np.stack(out, axis=1),)
