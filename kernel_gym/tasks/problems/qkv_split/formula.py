"""Split of packed projections head by head."""

import numpy as np

SMALL = {"tokens": 3, "num_heads": 4, "num_kv_heads": 2, "head_dim": 8}


def formula(packed: np.ndarray, num_heads: int, num_kv_heads: int) -> tuple[np.ndarray, ...]:
    """Slices of columns, stacked."""
    columns = np.split(packed, num_heads + 2 * num_kv_heads, axis=1)
    cut = num_heads + num_kv_heads
    return np.stack(columns[:num_heads]), np.stack(columns[num_heads:cut]), np.stack(columns[cut:])
