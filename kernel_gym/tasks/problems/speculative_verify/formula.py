"""Verification with Python's own numbers."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 12, "steps": 3, "vocab": 9}
BYTES = 4 * 12 * (3 + 18 + 2)


def formula(
    drafted: np.ndarray,
    draft: np.ndarray,
    target: np.ndarray,
    uniform: np.ndarray,
    noise: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Ratios instead of products for the decisions."""
    tokens, counts = [], []
    for i in range(12):
        done = 0
        for t in range(4):
            rest = target[i, t]
            if t < 3:
                j = drafted[i, t]
                if draft[i, t, j] == 0 or target[i, t, j] / draft[i, t, j] >= uniform[i, t]:
                    done += 1
                    continue
                rest = np.maximum(rest - draft[i, t], 0)
            break
        counts.append(done)
        tokens.append(max(range(9), key=lambda j: (rest[j] / noise[i, j], -j)))
    return np.array(tokens), np.array(counts)
