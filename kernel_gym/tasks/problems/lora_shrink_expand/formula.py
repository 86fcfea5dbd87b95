"""LoRA token by token."""

from __future__ import annotations

import numpy as np

SMALL = {"tokens": 9, "adapters": 3, "rank": 8, "width": 16, "out_width": 32}


def formula(
    x: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    scale: np.ndarray,
    adapter: np.ndarray,
    base: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Multiplies the adapter's two matrices out before they meet the token."""
    out = base.copy()
    for t, i in enumerate(adapter):
        if i >= 0:
            out[t] += x[t] @ (scale[i] * (a[i] @ b[i]))
    return (out,)
