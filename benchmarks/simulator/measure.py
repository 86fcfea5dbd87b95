"""Measures the launches of points on a real GPU, for `python -m benchmarks record`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from benchmarks.clock.benchmark_file import benchmarked_call
from benchmarks.clock.launches import TritonLaunch, launcher
from benchmarks.clock.points import MEASURED, parse_point


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

    def measure(self, line: str, folder: Path) -> dict[str, Any]:
        """A point, a line of JSON, with the times of this device.

        Raises:
            Exception: Whatever the kernel's file raises.
        """
        raw = {k: v for k, v in json.loads(line).items() if k not in MEASURED}
        point = parse_point(raw)
        path = folder / point.kernel
        if point.launch:
            call = launcher(path, TritonLaunch.from_json(point.launch))
        else:
            call = benchmarked_call(path, point.parameters)
        names = ("time_us", "p20_us", "p80_us", "floor_us")
        times = (*self._times(call), self.floor)
        own = {name: round(time, 3) for name, time in zip(names, times, strict=True)}
        return {**raw, "device": self.name, **own}

    @staticmethod
    def _times(call: Any) -> tuple[float, float, float]:
        """Median, 20th and 80th percentile of the microseconds of calls with a cleared L2.

        Between events on the stream.
        """
        import triton

        median, low, high = triton.testing.do_bench(call, quantiles=[0.5, 0.2, 0.8])
        return median * 1e3, low * 1e3, high * 1e3
