"""Records launches of Triton kernels that are linked for a real AMD GPU."""

from __future__ import annotations

from dataclasses import replace

from triton.backends import backends

from kernel_gym.worker.sim.triton_driver import TextBackend


def install() -> None:
    """Makes Triton link its code objects, as it does for a GPU, instead of keeping their text."""
    backends["amd"] = replace(backends["amd"], compiler=TextBackend.__mro__[1])
