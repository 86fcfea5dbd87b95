"""Masked softmax over the kept keys alone."""

import numpy as np

SMALL = {"batch": 3, "heads": 2, "queries": 4, "keys": 9}


def formula(
    x: np.ndarray, bias: np.ndarray, keep: np.ndarray, scale: float
) -> tuple[np.ndarray, ...]:
    """Picks the kept keys out, and puts their weights back among zeros."""
    out = np.zeros_like(x)
    for b, h, q in np.ndindex(x.shape[:3]):
        (kept,) = np.nonzero(keep[b])
        if len(kept):
            logits = x[b, h, q, kept] * scale + bias[h, q, kept]
            out[b, h, q, kept] = np.exp(logits - np.logaddexp.reduce(logits))
    return (out,)
