"""Kullback-Leibler divergence from the probabilities themselves."""

import math

import numpy as np

SMALL = {"rows": 6, "classes": 17}


def formula(student: np.ndarray, teacher: np.ndarray, temperature: float) -> tuple[np.ndarray, ...]:
    """`sum(p log(p / q))`, as an expectation of the difference of log-weights."""
    losses = []
    for s, t in zip(student / temperature, teacher / temperature, strict=True):
        shift = math.log(math.fsum(np.exp(s - s.max()))) + s.max()
        shift -= math.log(math.fsum(np.exp(t - t.max()))) + t.max()
        p = np.exp(t - t.max())
        losses.append(math.fsum(p / math.fsum(p) * (t - s + shift)))
    return (np.array(losses),)
