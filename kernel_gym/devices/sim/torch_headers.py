"""The words with which clang compiles a HIP source that includes PyTorch's headers."""

from __future__ import annotations

import sysconfig
from dataclasses import replace
from pathlib import Path

import torch

from kernel_gym.devices.sim.toolchain import HipToolchain

TORCH = Path(torch.__file__).parent
"""The folder of PyTorch."""
EXTENSION_BEGINNING = ("torch/extension.h", "hip/hip_runtime.h")
"""The includes with which the source of a candidate's extension begins."""
_OWN = Path(__file__).parents[2] / "simulated_rocm" / "torch_include"
"""Headers that PyTorch has only in its builds for GPUs."""


def header_words() -> list[str]:
    """Returns the folders of PyTorch's headers and of Python's, and the macros that they expect."""
    includes = (_OWN, TORCH / "include", TORCH / "include/torch/csrc/api/include")
    return [
        *(f"-I{path}" for path in (*includes, sysconfig.get_path("include"))),
        *("-w", "-DTORCH_API_INCLUDE_EXTENSION_H"),
        *("-DUSE_ROCM", "-D__HIP_NO_HALF_CONVERSIONS__=1"),
    ]


def with_torch(chain: HipToolchain) -> HipToolchain:
    """Returns a toolchain whose commands find PyTorch's headers.

    Templates that the headers use are instantiated once, when the headers are precompiled. The host
    side only records launches, so it is not optimised.
    """
    words = (*header_words(), "-fpch-instantiate-templates")
    return replace(chain, device=(*chain.device, *words), host=(*chain.host, *words, "-O0"))
