"""Log-softmax by pairwise logaddexp."""

import numpy as np

SMALL = {"rows": 4, "cols": 21}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Each row minus the logarithm of its sum of exponentials."""
    return (x - np.logaddexp.reduce(x, axis=1)[:, None],)


def check(found: tuple[np.ndarray, ...], inputs: dict) -> None:
    """The oracle agrees with the formula."""
    np.testing.assert_allclose(found[0], formula(inputs["x"])[0], rtol=1e-9)
