"""Binary cross entropy by logaddexp."""

import numpy as np

SMALL = {"rows": 5, "classes": 13}


def formula(
    logits: np.ndarray, target: np.ndarray, pos_weight: np.ndarray
) -> tuple[np.ndarray, ...]:
    """`-log(sigmoid(x))` is `log(1 + exp(-x))`."""
    missed = np.logaddexp(0, -logits) * pos_weight
    false = np.logaddexp(0, logits)
    return (np.average([missed * target, false * (1 - target)], axis=0).mean(1) * 2,)
