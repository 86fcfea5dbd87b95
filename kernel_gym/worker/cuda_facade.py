"""The part of `torch.cuda` that ordinary kernel wrappers call, over the simulated device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from kernel_gym.worker.runtime import SimRuntime


class Event:
    """An event with modelled time."""

    _runtime: SimRuntime

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._seconds = 0.0

    def record(self, stream: Any = None) -> None:
        """Notes the modelled time."""
        self._seconds = self._runtime.clock()

    def elapsed_time(self, end: Event) -> float:
        """Modelled milliseconds between two recorded events."""
        return (end._seconds - self._seconds) * 1e3

    def synchronize(self) -> None:
        """Launches are synchronous."""


PROPERTIES = SimpleNamespace(
    name="AMD Instinct MI300X",
    gcnArchName="gfx942:sramecc+:xnack-",
    major=9,
    minor=4,
    total_memory=192 << 30,
    multi_processor_count=304,
    warp_size=64,
    shared_memory_per_block=65536,
    max_threads_per_multi_processor=2048,
    L2_cache_size=4 << 20,
)


def install(runtime: SimRuntime) -> None:
    """Replaces the calls of `torch.cuda` that a CPU build cannot answer, in this process."""
    cuda: Any = torch.cuda
    stream = SimpleNamespace(cuda_stream=0, synchronize=lambda: None)
    cuda._lazy_init = lambda: None
    cuda.is_available = lambda: True
    cuda.is_initialized = lambda: True
    cuda.device_count = lambda: 1
    cuda.current_device = lambda: 0
    cuda.set_device = lambda device: None
    cuda.synchronize = lambda device=None: None
    cuda.empty_cache = lambda: None
    cuda.get_device_name = lambda device=None: PROPERTIES.name
    cuda.get_device_capability = lambda device=None: (PROPERTIES.major, PROPERTIES.minor)
    cuda.get_device_properties = lambda device=None: PROPERTIES
    cuda.current_stream = lambda device=None: stream
    cuda.default_stream = lambda device=None: stream
    cuda.Event = type("Event", (Event,), {"_runtime": runtime})
