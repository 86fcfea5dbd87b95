"""8-bit Adam parameter by parameter."""

from __future__ import annotations

import math

import numpy as np

SMALL = {"blocks": 2}


def formula(
    param: np.ndarray,
    grad: np.ndarray,
    m_code: np.ndarray,
    m_scale: np.ndarray,
    v_code: np.ndarray,
    v_scale: np.ndarray,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    step: int,
) -> tuple[np.ndarray, ...]:
    """Python floats in loops."""
    new = [np.empty_like(param), np.zeros((2, 256)), np.empty(2), np.zeros((2, 256)), np.empty(2)]
    for b in range(2):
        m, v = np.empty(256), np.empty(256)
        for i in range(256):
            g, p = grad[256 * b + i], param[256 * b + i]
            m[i] = m_code[b, i] * m_scale[b] / 127
            m[i] += (1 - beta1) * (g - m[i])
            v[i] = float(v_code[b, i]) ** 2 * v_scale[b] / 255**2
            v[i] += (1 - beta2) * (g * g - v[i])
            mean, square = m[i] / (1 - beta1**step), v[i] / (1 - beta2**step)
            new[0][256 * b + i] = p - lr * (mean / (math.sqrt(square) + eps) + decay * p)
        new[2][b], new[4][b] = max(np.abs(m).max(), 1e-30), max(v.max(), 1e-30)
        new[1][b], new[3][b] = np.rint(127 * m / new[2][b]), np.rint(255 * np.sqrt(v / new[4][b]))
    return tuple(new)
