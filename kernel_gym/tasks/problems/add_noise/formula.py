"""Forward diffusion as a rotation."""

import numpy as np

SMALL = {"batch": 5, "pixels": 9, "steps": 50}


def formula(
    x: np.ndarray, noise: np.ndarray, alphas: np.ndarray, timestep: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The angle whose squared cosine is alpha mixes each sample with its noise."""
    angle = np.arccos(np.sqrt([alphas[int(t)] for t in timestep]))
    return (np.cos(angle)[:, None] * x + np.sin(angle)[:, None] * noise,)
