"""Penalties token by token."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 4, "vocab": 12, "prompt_length": 6, "output_length": 9}


def formula(
    logits: np.ndarray,
    prompt: np.ndarray,
    output: np.ndarray,
    repetition: np.ndarray,
    frequency: np.ndarray,
    presence: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Counts in lists."""
    out = logits.copy()
    for i, t in np.ndindex(logits.shape):
        count = list(output[i]).count(t)
        if t in prompt[i] or count:
            out[i, t] *= repetition[i] if out[i, t] <= 0 else 1 / repetition[i]
        if count:
            out[i, t] -= presence[i] + count * frequency[i]
    return (out,)
