"""Reads what a simulated GPU says of kernels, as the judge does. It loads no engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel_gym.records import KernelFacts
from kernel_gym.sim.timing.folders import without_folders


def read_kernels(described: Sequence[Mapping[str, object]]) -> tuple[KernelFacts, ...]:
    """Returns the facts of a call's kernels without folders, which differ between runs."""
    facts = []
    for entry in described:
        profile = entry["profile"]
        assert isinstance(profile, dict)
        facts.append(KernelFacts.model_validate({**entry, "profile": without_folders(profile)}))
    return tuple(facts)
