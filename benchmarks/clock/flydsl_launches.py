"""Launches of aiter's FlyDSL kernels on the simulated GPU, as aiter's dispatcher makes them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.clock import flydsl_moe
from benchmarks.clock.aiter_package import AiterPackage

Call = Callable[[], object]
Build = Callable[[Any, dict[str, Any], dict[str, Any]], Call]
"""Makes the call of a family from aiter, a configuration and a problem."""
_ONE_IN_FP8 = 0x38
"""The bits of 1 in float8_e4m3fn."""


class FlyDslKernels:
    """FlyDSL, made ready in this process, and aiter's kernels.

    Args:
        checkouts: Folders, one of which is a checkout of aiter.
        arch: The simulated chip.
        compute_units: Of the chip.

    Raises:
        FileNotFoundError: No folder is a checkout of aiter.
        ImportError: FlyDSL is not installed.
    """

    def __init__(self, checkouts: list[Path], arch: str, compute_units: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        _prepare(arch, self._folder.name)
        self._aiter = AiterPackage(checkouts, arch, compute_units)

    def call(self, launch: dict[str, Any]) -> Call:
        """The call that makes a launch; its inputs exist.

        Args:
            launch: As `benchmarks.clock.tuning_rows.launch_of` returns it.
        """
        build = BUILDERS[launch["family"]]
        return build(self._aiter, launch["configuration"], launch["problem"])


def _prepare(arch: str, folder: str) -> None:
    """Makes FlyDSL compile for the simulated chip; it puts files into a folder."""
    from kernel_gym.worker.recording import flydsl

    home = os.environ.get("HOME")
    os.environ["HOME"] = folder
    try:
        flydsl.prepare(arch, lambda text: text)
    finally:
        if home is None:
            del os.environ["HOME"]
        else:
            os.environ["HOME"] = home


def _ones(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """A tensor of ones on the device."""
    if dtype == torch.float8_e4m3fn:
        bits = torch.empty(shape, dtype=torch.uint8, device="cuda").fill_(_ONE_IN_FP8)
        return bits.view(dtype)
    return torch.empty(shape, dtype=dtype, device="cuda").fill_(1)


def _hgemm(aiter: Any, configuration: dict[str, Any], problem: dict[str, Any]) -> Call:
    """`out[M, N] = a[M, K] @ b[N, K].T`, in bfloat16, with a bias if the row has one."""
    kernels = aiter.module("gemm_kernels")
    rows, columns, depth = (problem[name] for name in "MNK")
    a, b, out = _ones(rows, depth), _ones(columns, depth), _ones(rows, columns)
    bias = _ones(columns) if problem.get("bias") else None
    return lambda: kernels.flydsl_hgemm(a, b, out, bias=bias, **configuration)


def _preshuffle(aiter: Any, configuration: dict[str, Any], problem: dict[str, Any]) -> Call:
    """The same in float8_e4m3fn, with a scale for each row of `a` and of `b`."""
    kernels = aiter.module("gemm_kernels")
    operands = _scaled_operands(problem)
    return lambda: kernels.flydsl_preshuffle_gemm_a8(*operands, **configuration)


def _eight_waves(aiter: Any, configuration: dict[str, Any], problem: dict[str, Any]) -> Call:
    kernels = aiter.module("gemm_a8w8_bpreshuffle_8wave")
    operands = _scaled_operands(problem)
    return lambda: kernels.flydsl_8wave_gemm_a8(*operands, **configuration)


def _scaled_operands(problem: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """`a[M, K]`, `b[N, K]`, their scales and `out[M, N]`."""
    rows, columns, depth = (problem[name] for name in "MNK")
    fp8 = torch.float8_e4m3fn
    scales = _ones(rows, 1, dtype=torch.float32), _ones(1, columns, dtype=torch.float32)
    a, b = _ones(rows, depth, dtype=fp8), _ones(columns, depth, dtype=fp8)
    return a, b, *scales, _ones(rows, columns)


BUILDERS: dict[str, Build] = {
    "flydsl_hgemm": _hgemm,
    "flydsl_bpreshuffle": _preshuffle,
    "flydsl_bpreshuffle_8w": _eight_waves,
    "flydsl_moe1": flydsl_moe.stage_1,
    "flydsl_moe2": flydsl_moe.stage_2,
}
