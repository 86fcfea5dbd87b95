"""The part of `torch.cuda` that a CPU build of PyTorch cannot answer, for the simulated device.

All work runs in order on one queue, so streams are only names. Times are modelled. Other calls
raise, as they do in a CPU build of PyTorch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace

import torch
import triton

from kernel_gym.protocol.request import Request
from kernel_gym.worker.sim.properties import HostProperties
from kernel_gym.worker.sim.runtime import SimRuntime

HIP_VERSION = "6.4.0"
Device = int | str | torch.device
"""A device as calls of `torch.cuda` take it."""


def properties_of(device: HostProperties) -> SimpleNamespace:
    """Returns the result of `torch.cuda.get_device_properties`."""
    return SimpleNamespace(
        name=device.name,
        gcnArchName=device.full_arch,
        major=9,
        minor=device.minor,
        total_memory=device.memory_bytes,
        multi_processor_count=device.spec.compute_units,
        warp_size=device.spec.wavefront,
        shared_memory_per_block=device.spec.lds_bytes,
        shared_memory_per_block_optin=device.spec.lds_bytes,
        shared_memory_per_multiprocessor=device.spec.lds_bytes,
        regs_per_multiprocessor=131072,
        max_threads_per_block=1024,
        max_threads_per_multi_processor=2048,
        L2_cache_size=device.l2_bytes,
        is_integrated=0,
        is_multi_gpu_board=0,
    )


class Stream:
    """A stream without effect: work runs in the order of the calls."""

    cuda_stream = 0
    device_index = 0

    def __init__(self, device: Device | None = None, priority: int = 0, **_: object) -> None:
        if device is not None:
            _set_device(device)
        self.device = torch.device("cuda", 0)
        self.priority = priority

    def synchronize(self) -> None:
        """Launches are synchronous."""

    def query(self) -> bool:
        """Returns True: all work is done."""
        return True

    def wait_stream(self, stream: object) -> None:
        """Work is in order already."""

    def wait_event(self, event: object) -> None:
        """Work is in order already."""

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, a new one if none is given."""
        recorded: Event = event or vars(torch.cuda)["Event"]()  # that of `install`
        recorded.record(self)
        return recorded


class Event:
    """An event with modelled time."""

    _runtime: SimRuntime

    def __init__(self, enable_timing: bool = False, **_: object) -> None:
        self._timed = enable_timing
        self._seconds: float | None = None

    def record(self, stream: object = None) -> None:
        """Notes the modelled time, if it is asked for."""
        self._seconds = self._runtime.clock() if self._timed else 0.0

    def wait(self, stream: object = None) -> None:
        """Work is in order already."""

    def query(self) -> bool:
        """Returns True: all work is done."""
        return True

    def elapsed_time(self, end: Event) -> float:
        """Modelled milliseconds between two recorded events.

        Raises:
            ValueError: An event was not recorded, or was made without `enable_timing=True`.
        """
        if not (self._timed and end._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._seconds is None or end._seconds is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end._seconds - self._seconds) * 1e3

    def synchronize(self) -> None:
        """Launches are synchronous."""


class CapturedGraph:
    """A captured graph: a list of requests, which `replay` sends."""

    _runtime: SimRuntime

    def __init__(self, keep_graph: bool = False) -> None:
        self._requests: list[Request] | None = None

    def capture_begin(self, pool: object = None, capture_error_mode: str = "global") -> None:
        """Records launches from now on, without making them."""
        self._runtime.begin_capture()

    def capture_end(self) -> None:
        """Ends the recording."""
        self._requests = self._runtime.end_capture()

    def replay(self) -> None:
        """Makes all captured launches.

        Raises:
            RuntimeError: Nothing was captured.
        """
        if self._requests is None:
            raise RuntimeError("replay() of a graph that was not captured")
        self._runtime.replay(self._requests)

    def reset(self) -> None:
        """Forgets what was captured."""
        self._requests = None

    def pool(self) -> tuple[int, int]:
        """Returns a token, since there are no pools."""
        return (0, 0)


@contextlib.contextmanager
def _capture(graph: CapturedGraph, **_: object) -> Iterator[None]:
    """Implements `torch.cuda.graph`."""
    graph.capture_begin()
    try:
        yield
    finally:
        graph.capture_end()


def _bench(runtime: SimRuntime) -> Callable:
    """Implements `triton.testing.do_bench` by modelled time. One run suffices without noise."""

    def do_bench(
        fn: Callable,
        *_: object,
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
        **__: object,
    ) -> float | list[float]:
        runtime.time_of(fn)  # a kernel may be tuned in its first call
        milliseconds = runtime.time_of(fn) * 1e3
        if quantiles is not None:
            values = [milliseconds] * len(quantiles)
            return values[0] if len(values) == 1 else values
        return [milliseconds] if return_mode == "all" else milliseconds

    return do_bench


def _memory_calls(runtime: SimRuntime) -> dict[str, Callable]:
    total = runtime.properties.memory_bytes

    def statistics(device: object = None) -> dict[str, int]:
        return {
            f"{kind}_bytes.all.{when}": value
            for kind in ("allocated", "reserved", "active")
            for when, value in (("current", runtime.allocated), ("peak", runtime.most_allocated))
        }

    forget = lambda device=None: runtime.forget_peak()  # noqa: E731
    return {
        "memory_allocated": lambda device=None: runtime.allocated,
        "max_memory_allocated": lambda device=None: runtime.most_allocated,
        "memory_reserved": lambda device=None: runtime.allocated,
        "max_memory_reserved": lambda device=None: runtime.most_allocated,
        "memory_stats": statistics,
        "mem_get_info": lambda device=None: (total - runtime.allocated, total),
        "reset_peak_memory_stats": forget,
        "reset_max_memory_allocated": forget,
        "reset_accumulated_memory_stats": lambda device=None: None,
        "set_per_process_memory_fraction": lambda fraction, device=None: None,
        "empty_cache": lambda: None,
        "ipc_collect": lambda: None,
    }


def _set_device(device: Device) -> None:
    """Implements `torch.cuda.set_device`; a negative number leaves the device as it is."""
    index = device if isinstance(device, int) else torch.device(device).index or 0
    if index > 0:
        raise RuntimeError(
            f"CUDA error: invalid device ordinal: found cuda:{index}, expected cuda:0, the only "
            "simulated GPU"
        )


def _device_calls(device: HostProperties) -> dict[str, Callable]:
    known = properties_of(device)

    def properties(of: Device | None = None) -> SimpleNamespace:
        if of is not None:
            _set_device(of)
        return known

    return {
        "_lazy_init": lambda: None,
        "_exchange_device": lambda device: 0,
        "_maybe_exchange_device": lambda device: 0,
        "init": lambda: None,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda including_emulation=True: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _set_device,
        "synchronize": lambda device=None: None,
        "get_device_name": lambda device=None: properties(device).name,
        "get_device_capability": lambda device=None: (
            properties(device).major,
            properties(device).minor,
        ),
        "get_device_properties": properties,
        "get_arch_list": lambda: [device.arch],
        "current_blas_handle": lambda: 0,
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
    }


def _stream_calls(runtime: SimRuntime) -> dict[str, Callable]:
    default = Stream()
    current = [default]

    @contextlib.contextmanager
    def stream(chosen: Stream | None) -> Iterator[None]:
        before, current[0] = current[0], chosen or default
        try:
            yield
        finally:
            current[0] = before

    def set_stream(chosen: Stream | None) -> None:
        current[0] = chosen or default

    return {
        "Stream": Stream,
        "stream": stream,
        "set_stream": set_stream,
        "current_stream": lambda device=None: current[0],
        "default_stream": lambda device=None: default,
        "Event": type("Event", (Event,), {"_runtime": runtime}),
        "CUDAGraph": type("CUDAGraph", (CapturedGraph,), {"_runtime": runtime}),
        "graph": lambda cuda_graph, pool=None, stream=None, **_: _capture(cuda_graph),
        "graph_pool_handle": lambda: (0, 0),
        "is_current_stream_capturing": lambda: runtime.capturing,
    }


def install(runtime: SimRuntime) -> None:
    """Replaces the calls of `torch.cuda` that a CPU build cannot answer, in this process."""
    calls = _device_calls(runtime.properties) | _memory_calls(runtime) | _stream_calls(runtime)
    for name, call in calls.items():
        setattr(torch.cuda, name, call)
    # builders of extensions ask the library itself for the architectures
    vars(torch._C).update(_cuda_getArchFlags=lambda: runtime.properties.arch)
    torch.version.hip = HIP_VERSION
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = _bench(runtime)
