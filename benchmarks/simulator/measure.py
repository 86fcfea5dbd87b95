"""Measures the launches of records on a real GPU, for `python -m benchmarks record`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from benchmarks.simulator.launches import (
    Argument,
    Tensor,
    TritonLaunch,
    kernel_function,
    positional,
)
from benchmarks.simulator.records import Measured


class MeasuringDevice:
    """The first GPU of PyTorch, which may be one of AMD or NVIDIA.

    Attributes:
        name: Its name.
        floor: Median time of a launch of an empty kernel, in microseconds.
    """

    def __init__(self) -> None:
        """Find the GPU and measure its launch floor.

        Raises:
            RuntimeError: If PyTorch sees no GPU.
        """
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU here; install its build for ROCm or CUDA")
        self.name = torch.cuda.get_device_name(0)
        from benchmarks.simulator.kernels import empty

        target = torch.zeros(1, device="cuda")
        self.floor = self._times(lambda: empty[(1,)](target))[0]

    def measure(self, record: Measured, folder: Path) -> dict[str, Any]:
        """The record with the time of its fastest launch on this device."""
        times = [self._launch(folder / record.kernel, launch) for launch in record.launches]
        best = min(range(len(times)), key=lambda i: times[i][0])
        return record.timed(times[best], self.floor, self.name, record.launches[best])

    def _launch(self, path: Path, launch: TritonLaunch) -> tuple[float, float, float]:
        function = kernel_function(path, launch.function)
        arguments = [_on_device(value) for value in positional(function, launch)]
        return self._times(lambda: function[launch.grid](*arguments, **launch.options))

    @staticmethod
    def _times(call: Any) -> tuple[float, float, float]:
        """Median, 20th and 80th percentile of the microseconds of calls with a cleared L2.

        Between events on the stream.
        """
        import triton

        median, low, high = triton.testing.do_bench(call, quantiles=[0.5, 0.2, 0.8])
        return median * 1e3, low * 1e3, high * 1e3


def _on_device(value: Argument | Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    if value.kind.is_floating_point:
        return torch.randn(value.shape, device="cuda").to(value.kind)
    return torch.zeros(value.shape, dtype=value.kind, device="cuda")
