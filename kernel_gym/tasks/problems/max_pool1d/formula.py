"""Max pooling window by window."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "channels": 2, "length": 9, "window": 3, "stride": 2, "pad": 1}


def formula(x: np.ndarray, window: int, stride: int, pad: int) -> tuple[np.ndarray, ...]:
    """Cuts every window at the ends of the sequence."""
    count = (x.shape[2] + 2 * pad - window) // stride + 1
    spans = [slice(max(0, i * stride - pad), i * stride - pad + window) for i in range(count)]
    return (np.stack([x[:, :, span].max(2) for span in spans], axis=2),)
