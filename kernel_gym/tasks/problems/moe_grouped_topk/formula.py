"""Routing token by token with Python's sort."""

import numpy as np

SMALL = {"tokens": 5, "groups": 4, "size": 3, "keep": 2, "top_k": 4}


def formula(
    score: np.ndarray, bias: np.ndarray, groups: int, keep: int, top_k: int, factor: float
) -> tuple[np.ndarray, ...]:
    """Sorted by falling rank and rising number."""
    size = score.shape[1] // groups
    weight, expert = np.empty((len(score), top_k)), np.empty((len(score), top_k), np.int64)
    for token, row in enumerate(score):
        rank = row + bias
        pairs = [sum(sorted(rank[g * size : (g + 1) * size])[-2:]) for g in range(groups)]
        kept = sorted(range(groups), key=lambda g: (-pairs[g], g))[:keep]
        inside = [e for e in range(len(row)) if e // size in kept]
        expert[token] = sorted(inside, key=lambda e: (-rank[e], e))[:top_k]
        weight[token] = row[expert[token]] * factor / row[expert[token]].sum()
    return weight, expert
