"""Cross entropy of a head by scipy."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax, logsumexp

SMALL = {"rows": 9, "hidden": 16, "vocab": 21}


def formula(
    x: np.ndarray, weight: np.ndarray, target: np.ndarray, ignore_index: int
) -> tuple[np.ndarray, ...]:
    """The whole matrix of logits at once."""
    logits = np.einsum("ih,vh->iv", x, weight)
    logs = log_softmax(logits, axis=1)
    loss = [0.0 if t == ignore_index else -logs[i, t] for i, t in enumerate(target)]
    return np.array(loss), logsumexp(logits, axis=1)
