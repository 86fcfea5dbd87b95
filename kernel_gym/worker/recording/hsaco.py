"""Links kernels for a real AMD GPU, with the assembler and the linker that come with Triton."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

from triton.backends import backends

from kernel_gym.worker.sim.triton_driver import TextBackend

CodeOf = Callable[[bytes], bytes]
"""Makes the code that a device takes from assembler text."""


def install() -> None:
    """Makes Triton link its code objects, as it does for a GPU, instead of keeping their text."""
    backends["amd"] = replace(backends["amd"], compiler=TextBackend.__mro__[1])


def linked(assembler: bytes, arch: str) -> bytes:
    """Returns the code object of an assembler text.

    Args:
        assembler: The text, of a source in HIP.
        arch: The architecture, such as `gfx942`.
    """
    compiler = TextBackend.__mro__[1]
    return bytes(compiler.make_hsaco(assembler.decode(), {}, SimpleNamespace(arch=arch)))
