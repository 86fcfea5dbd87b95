"""A decoder layer token by token."""

from __future__ import annotations

import numpy as np

SMALL = {"tokens": 5, "kv_heads": 2, "group": 3, "head_dim": 16, "intermediate": 11}
GROUP = SMALL["group"]


def _norm(row: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    return row * weight / np.sqrt(np.dot(row, row) / len(row) + eps)


def _turned(row: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """Turns the pairs of each head as complex numbers."""
    halves = row.reshape(-1, 2, len(cos))
    turned = (halves[:, 0] + 1j * halves[:, 1]) * (cos + 1j * sin)
    return np.stack([turned.real, turned.imag], axis=1).reshape(-1, 2 * len(cos))


def formula(
    x: np.ndarray,
    input_norm: np.ndarray,
    q_proj: np.ndarray,
    k_proj: np.ndarray,
    v_proj: np.ndarray,
    o_proj: np.ndarray,
    post_norm: np.ndarray,
    gate_proj: np.ndarray,
    up_proj: np.ndarray,
    down_proj: np.ndarray,
    cos: np.ndarray,
    sin: np.ndarray,
    eps: float,
) -> tuple[np.ndarray, ...]:
    """Keeps the keys and values of former tokens, as decoding does."""
    width, keys, values, out = 2 * cos.shape[1], [], [], np.zeros_like(x)
    for t, row in enumerate(x):
        a = _norm(row, input_norm, eps)
        keys.append(_turned(k_proj @ a, cos[t], sin[t]))
        values.append((v_proj @ a).reshape(-1, width))
        attended = []
        for head, query in enumerate(_turned(q_proj @ a, cos[t], sin[t])):
            scores = np.array([key[head // GROUP] @ query for key in keys]) / np.sqrt(width)
            weights = np.exp(scores - scores.max())
            shared = np.array([value[head // GROUP] for value in values])
            attended.append(weights @ shared / weights.sum())
        h = row + o_proj @ np.concatenate(attended)
        m = _norm(h, post_norm, eps)
        gate = gate_proj @ m
        out[t] = h + down_proj @ (gate / (1 + np.exp(-gate)) * (up_proj @ m))
    return (out,)
