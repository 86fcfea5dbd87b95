"""Sampling with Python's own sums."""

from __future__ import annotations

import math

import numpy as np

SMALL = {"rows": 20, "vocab": 90}


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """Walks through the kept tokens of each row."""
    rows = zip(found[0], inputs["logits"], inputs["uniform"], strict=True)
    for token, logits, uniform in rows:
        top = max(logits)
        weight = {j: math.exp((x - top) / inputs["temperature"]) for j, x in enumerate(logits)}
        kept = [j for j in range(90) if weight[j] >= inputs["min_p"]]
        total = math.fsum(weight[j] for j in kept)
        ends = [math.fsum(weight[j] for j in kept[: n + 1]) for n in range(len(kept))]
        assert token == next((j for j, e in zip(kept, ends, strict=True) if e > uniform * total))
