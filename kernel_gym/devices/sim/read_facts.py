"""Reads what a simulated GPU says of kernels, as the judge does. It loads no engine."""

from __future__ import annotations

from typing import Any

from kernel_gym.records import KernelFacts
from kernel_gym.sim.timing.folders import without_folders


def read_kernels(described: list[dict[str, Any]]) -> tuple[KernelFacts, ...]:
    """Returns the facts of a call's kernels without folders, which differ between runs."""
    return tuple(
        KernelFacts(**{**entry, "profile": without_folders(entry["profile"])})
        for entry in described
    )
