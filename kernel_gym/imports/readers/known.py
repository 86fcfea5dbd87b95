"""The readers of all suites, and which of them a checkout fits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernel_gym.imports.readers import (
    fastkernels,
    kernelbench,
    of_halves,
    operators,
    reference_kernels,
    robust_kbench,
)
from kernel_gym.imports.readers.arena import ArenaReader
from kernel_gym.imports.readers.base import CheckoutError, Reader
from kernel_gym.imports.readers.own_files import OwnReader
from kernel_gym.imports.readers.rocm_bench import RocmReader
from kernel_gym.tasks.names import OWN_PREFIX, UnknownName


def readers() -> dict[str, Reader]:
    """Returns the readers by the name of their suite."""
    return {reader.suite: reader for reader in _READERS}


def get_reader(suite: str) -> Reader:
    """Returns the reader of a suite, or of a user's own file.

    Raises:
        UnknownName: There is none. The message lists similar names.
    """
    known = readers()
    if suite.startswith(OWN_PREFIX):
        return OwnReader(suite)
    if suite not in known:
        raise UnknownName("suite", suite, known)
    return known[suite]


def readers_of(checkout: Path) -> list[Reader]:
    """Returns the readers that a checkout fits; one checkout may hold several suites.

    Raises:
        CheckoutError: It is no folder, or fits none.
    """
    if not checkout.is_dir():
        raise CheckoutError(f"{checkout}: found no folder, expected a checkout of a suite")
    fitting = [reader for reader in _READERS if reader.detect(checkout)]
    if not fitting:
        known = ", ".join(sorted(readers()))
        raise CheckoutError(f"{checkout}: found no suite, expected a checkout of one of: {known}")
    return fitting


_READERS: Sequence[Reader] = (
    of_halves.G,
    of_halves.T,
    of_halves.GEAK_G,
    of_halves.KERNELBENCHX,
    RocmReader(),
    ArenaReader(),
    kernelbench.TRITON,
    kernelbench.HIP,
    operators.SOL_TRITON,
    operators.SOL_HIP,
    operators.FLASHINFER_TRITON,
    operators.FLASHINFER_HIP,
    reference_kernels.TRITON,
    reference_kernels.HIP,
    robust_kbench.TRITON,
    robust_kbench.HIP,
    fastkernels.TRITON,
    fastkernels.HIP,
)
