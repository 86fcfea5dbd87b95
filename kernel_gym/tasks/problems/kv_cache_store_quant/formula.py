"""The store checked by reading each token back from its slot."""

from __future__ import annotations

import numpy as np

SMALL = {"tokens": 35, "heads": 2, "head_dim": 16}


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """No value moves by more than half a step of its head's scale."""
    assert sorted(inputs["slot"]) == list(range(35))
    for cache, scale, x in zip(found[:2], found[2:], (inputs["k"], inputs["v"]), strict=True):
        for token, slot in enumerate(inputs["slot"]):
            for head in range(2):
                step = max(np.abs(x[token, head]).max(), 1e-8) / 127
                np.testing.assert_allclose(scale[slot, head], step, rtol=1e-12)
                moved = np.abs(cache[slot, head] * step - x[token, head])
                assert (moved <= step / 2 * (1 + 1e-9)).all()
