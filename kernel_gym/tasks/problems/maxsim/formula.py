"""Scores token by token."""

from __future__ import annotations

import numpy as np

SMALL = {"queries": 2, "query_len": 3, "docs": 4, "doc_len": 5, "width": 16}
BYTES = 2 * 16 * 10 + 4 * 4 + 4 * 8


def formula(query: np.ndarray, doc: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, ...]:
    """The largest of a list of products."""
    out = np.zeros((2, 4))
    for q, d, i in np.ndindex(2, 4, 3):
        out[q, d] += max(np.vdot(query[q, i], doc[d, j]) for j in range(length[d]))
    return (out,)
