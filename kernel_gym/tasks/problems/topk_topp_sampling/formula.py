"""Sampling with Python's own sorting and sums."""

from __future__ import annotations

import math

import numpy as np

SMALL = {"rows": 20, "vocab": 90}


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """Walks down the ordered tokens of each row."""
    rows = zip(*(inputs[k] for k in ("logits", "top_k", "top_p", "uniform")), strict=True)
    for ours, (logits, top_k, top_p, uniform) in zip(found[0], rows, strict=True):
        order = sorted(range(90), key=lambda j: (-logits[j], j))[:top_k]
        share = [math.exp(logits[j] - logits[order[0]]) for j in order]
        share = [s / math.fsum(share) for s in share]
        kept = next((n for n in range(1, top_k) if math.fsum(share[:n]) >= top_p), top_k)
        target = uniform * math.fsum(share[:kept])
        place = next((n for n in range(kept) if math.fsum(share[: n + 1]) > target), kept - 1)
        assert ours == order[place]
