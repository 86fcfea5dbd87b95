"""AWQ unpacking weight by weight."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 256, "cols": 24}
PLACE = {0: 0, 2: 1, 4: 2, 6: 3, 1: 4, 3: 5, 5: 6, 7: 7}


def formula(qweight: np.ndarray, scales: np.ndarray, qzeros: np.ndarray) -> tuple[np.ndarray, ...]:
    """Column j is in word j // 8, at the place of j % 8."""
    out = np.empty((len(qweight), scales.shape[1]))
    for i, j in np.ndindex(out.shape):
        unit = 16 ** PLACE[j % 8]
        code = int(qweight[i, j // 8]) // unit % 16
        zero = int(qzeros[i // 128, j // 8]) // unit % 16
        out[i, j] = (code - zero) * scales[i // 128, j]
    return (out,)
