"""Sorting by expert with lists."""

from __future__ import annotations

import numpy as np

SMALL = {"tokens": 21, "top_k": 2, "experts": 5, "block": 16}


def formula(expert: np.ndarray, experts: int, block: int) -> tuple[np.ndarray, ...]:
    """Appends choices to their expert's list, pads the lists, joins them."""
    shares: list[list[int]] = [[] for _ in range(experts)]
    for choice, e in enumerate(expert.ravel()):
        shares[e].append(choice)
    blocks = -(-(expert.size + experts * (block - 1)) // block)
    order, owner = [], []
    for e, share in enumerate(shares):
        used = -(-len(share) // block)
        order += share + [expert.size] * (used * block - len(share))
        owner += [e] * used
    total = np.array([len(order)])
    order += [expert.size] * (blocks * block - len(order))
    owner += [-1] * (blocks - len(owner))
    return np.array(order), np.array(owner), total
