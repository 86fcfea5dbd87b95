"""Nearest neighbours by sorting whole numbers of grid steps."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "query_count": 5, "size": 11, "count": 4}


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """The smallest squared distances, and indices that lie at them."""
    distance, index = found
    queries, points = (np.round(inputs[k] * 256).astype(int) for k in ("queries", "points"))
    for b, q in np.ndindex(queries.shape[:2]):
        squared = ((points[b] - queries[b, q]) ** 2).sum(1)
        np.testing.assert_array_equal(distance[b, q] * 256**2, sorted(squared)[:4])
        np.testing.assert_array_equal(squared[index[b, q]], sorted(squared)[:4])
        assert len(set(index[b, q])) == 4
