"""Spreads evaluators over the GPUs of one machine."""

from __future__ import annotations

import os

from kernel_gym.devices import backend_of, describe
from kernel_gym.devices.base import InfraError


def devices_for(device: str, workers: int) -> tuple[str, ...]:
    """The devices that evaluators of a pool are placed on.

    A pool that fits one GPU stays on the one that was named. A larger one uses all GPUs of the same
    model that this process sees, the named one first.

    Args:
        device: The full name of a device, such as `cuda:0`.
        workers: The number of evaluators.
    """
    backend = backend_of(device)
    if backend.threads or workers <= backend.default_workers(device, os.cpu_count() or 1):
        return (device,)
    own, kind = _model(device), device.partition(":")[0]
    others = (name for name in backend.present() if name != device)
    same = (name for name in others if name.partition(":")[0] == kind and _model(name) == own)
    return (device, *same)


def _model(device: str) -> tuple[str, int]:
    """The model of a device and the bytes of its memory; the name if it has no data sheet."""
    try:
        description = describe(device)
    except InfraError:
        return device, 0
    return description.hardware, description.total_memory
