"""`torch.compile` on a simulated GPU: what PyTorch's compiler asks of a CUDA build, answered here.

TorchInductor writes Triton for the simulated GPU, and the machine code of that is executed. The
configurations among which it chooses are timed by the modelled clock.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from kernel_gym.worker.sim.runtime import SimRuntime


def install(runtime: SimRuntime) -> None:
    """Prepares PyTorch's compiler when a program asks for it first.

    Its import takes seconds, and most programs do without it.

    Args:
        runtime: The GPU of this process.
    """
    compiled = torch.compile

    @functools.wraps(compiled)
    def compile(*args: Any, **options: Any) -> Any:
        _prepare(runtime)
        return compiled(*args, **options)

    torch.compile = compile


@functools.cache
def _prepare(runtime: SimRuntime) -> None:
    from torch._inductor import config
    from torch._inductor.runtime import benchmarking, triton_helpers

    config.compile_threads = 1  # another process would have another simulated GPU
    config.use_static_cuda_launcher = False  # a part of CUDA builds
    config.fallback_random = True  # the random numbers of the device are those of the host
    triton_helpers.set_driver_to_gpu = lambda: None  # Triton's driver is this GPU's already
    built: Any = torch._C  # without its allocator Inductor launches kernels instead of graphs
    built._cuda_cudaCachingAllocator_is_enabled = lambda: False
    benchmarking.register_benchmarker("cuda", _timer(runtime), override=True)
    kinds: Any = (benchmarking.TritonBenchmarker, benchmarking.InductorBenchmarker)
    for kind in kinds:
        kind.benchmark_gpu = _timer(runtime)


def _timer(runtime: SimRuntime) -> Callable[..., float]:
    """Returns a benchmark of Inductor: modelled milliseconds of a call, which has no noise."""

    def benchmark(self: object, call: Callable[[], object], *_: object, **__: object) -> float:
        call()  # compiles
        return runtime.time_of(call) * 1e3

    return benchmark
