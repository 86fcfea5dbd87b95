"""Microbenchmarks on the simulator beside the public measurements of an MI300X that they repeat.

Sources: RRZE's gpu-benches and the SC25 CDNA3 artifact (hibagus/SC25_AMD_CDNA3_Artifact@06e0811)
for latency, caches, streams and one compute unit; cklxx/fleet-mi300x@093e8ce6 for loads in flight;
LaelaZorana/kernel-grader-mi300x-rocm-trainium-nki@50e9a9d8 for atomics. The kernels are our own.
"""

from __future__ import annotations

import mmap
import shutil
import statistics
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock.points import GEAK_FLOOR_US, GEAK_OVERHEAD_US
from kernel_gym.sim import constants as hw
from kernel_gym.sim.engine.engine import Engine, LaunchResult, pack_kernarg

SOURCE = Path(__file__).with_name("micro.hip")
CLOCK_HZ = hw.MI300X.clock_hz
_COMPILERS = ("clang++-19", "clang++-20", "/opt/rocm/llvm/bin/clang++", "clang++")
_ARENA = 1 << 29
_LINE = hw.LINE_BYTES


@dataclass(frozen=True)
class ComparedFigure:
    """A measured figure and the modelled one.

    Attributes:
        curve: What was varied, such as ``latency``.
        name: The point on the curve.
        fitted: Whether a constant was computed from this curve.
    """

    curve: str
    name: str
    unit: str
    measured: float
    modelled: float
    fitted: bool

    @property
    def error(self) -> float:
        """Modelled over measured, less one."""
        return self.modelled / self.measured - 1


def assembler_text(source: Path = SOURCE, arch: str = "gfx942") -> str:
    """A file of microbenchmarks, compiled for a target.

    Raises:
        FileNotFoundError: If there is no clang that builds HIP.
    """
    compiler = next((path for name in _COMPILERS if (path := shutil.which(name))), None)
    if compiler is None:
        raise FileNotFoundError("no clang++ for HIP found; install clang-19")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "micro.s"
        command = [compiler, "-x", "hip", f"--offload-arch={arch}", "--offload-device-only", "-S"]
        command += ["-O2", "-nogpuinc", "-nogpulib", "-std=c++17", str(source), "-o", str(output)]
        subprocess.run(command, check=True, capture_output=True)
        return output.read_text(encoding="utf-8")


class Micro:
    """An engine with compiled microbenchmarks and one piece of memory."""

    def __init__(self, source: Path = SOURCE, arch: str = "gfx942") -> None:
        """Compile and map."""
        self.engine, self._text = Engine(), assembler_text(source, arch)
        self._buffer = mmap.mmap(-1, _ARENA)
        self.memory = np.frombuffer(self._buffer, np.uint64)
        self.base = self.memory.ctypes.data
        self.engine.set_memory(self.base, _ARENA)
        self.engine.set_allocations([(self.base, _ARENA, "memory")])

    def seconds(
        self, name: str, grid: int, block: int, *values: float, dynamic_lds: int = 0
    ) -> float:
        """Modelled seconds of a launch."""
        return self.launch(name, (grid,), block, *values, dynamic_lds=dynamic_lds).seconds or 0.0

    def launch(
        self, name: str, grid: tuple[int, ...], block: int, *values: float, dynamic_lds: int = 0
    ) -> LaunchResult:
        """Runs a kernel; an integer is a byte offset in memory if the argument has 8 bytes."""
        kernel = self.engine.load(self._text, name)
        arguments = [arg for arg in kernel.args if not arg.hidden]
        packed = [self._packed(v, arg.size) for arg, v in zip(arguments, values, strict=True)]
        kernarg = pack_kernarg(kernel, packed, grid, (block,), dynamic_lds)
        result = self.engine.launch(
            kernel, grid, (block,), kernarg, dynamic_lds, time_limit_s=120.0
        )
        if result.fault:
            raise RuntimeError(f"{name}: {result.fault.message}")
        return result

    def _packed(self, value: float, size: int) -> bytes:
        if isinstance(value, float):
            return struct.pack("<d" if size == 8 else "<f", value)
        return struct.pack("<Q", self.base + value) if size == 8 else struct.pack("<i", value)


def latency(micro: Micro) -> Iterator[ComparedFigure]:
    """Cycles of a dependent load by footprint, from passes over memory that is already cached."""
    for kilobytes, measured in ((8, 116.3), (512, 209.7), (2048, 212.0), (16384, 441.1)):
        lines = kilobytes * 1024 // _LINE
        order = np.random.default_rng(0).permutation(lines).astype(np.uint64)
        place = (order * _LINE) // 8
        micro.memory[place] = micro.base + np.roll(order, -1) * _LINE
        passes = 3 if kilobytes > 4096 else 9
        first = micro.seconds("chase", 1, 64, 0, _ARENA - 64, lines)
        all_passes = micro.seconds("chase", 1, 64, 0, _ARENA - 64, passes * lines)
        cycles = (all_passes - first) / ((passes - 1) * lines) * CLOCK_HZ
        yield ComparedFigure("latency", f"{kilobytes} KiB", "cycles", measured, cycles, True)


def loads_in_flight(micro: Micro) -> Iterator[ComparedFigure]:
    """Bandwidth of 304 workgroups of 256 threads by loads in flight."""
    step = 304 * 256 * 16
    for depth, measured in ((1, 2.59), (2, 3.40), (4, 3.74), (8, 4.24)):
        short, long = (
            micro.seconds(f"flight{depth}", 304, 256, 0, _ARENA - step, each) for each in (64, 256)
        )
        rate = 192 * step / (long - short) / 1e12
        yield ComparedFigure("loads in flight", str(depth), "TB/s", measured, rate, True)


def streams(micro: Micro) -> Iterator[ComparedFigure]:
    """Bandwidth of streams by occupancy."""
    measured = {
        ("init", 256): 3454,
        ("init", 512): 4313,
        ("init", 1024): 4587,
        ("read", 256): 1971,
        ("read", 512): 3090,
        ("read", 1024): 4141,
        ("scale", 256): 2635,
        ("scale", 512): 3430,
        ("scale", 1024): 3965,
        ("triad", 256): 3702,
        ("triad", 512): 3081,
        ("triad", 1024): 3878,
    }
    return compared_streams(micro, measured)


def compared_streams(
    micro: Micro, measured: dict[tuple[str, int], int]
) -> Iterator[ComparedFigure]:
    """Bandwidth of streams with two workgroups on a compute unit, by kernel and threads."""
    arrays = {"init": 1, "read": 1, "scale": 2, "triad": 4}
    for (name, block), rate in measured.items():
        part = _ARENA // 4
        places = [i * part for i in range(4)]
        short, long = (
            micro.seconds(f"stream_{name}", n // block, block, *places, dynamic_lds=30 << 10)
            for n in (1 << 22, 1 << 23)
        )
        modelled = 8 * arrays[name] * (1 << 22) / (long - short) / 1e9
        yield ComparedFigure(
            "stream by occupancy", f"{name} {block}x2", "GB/s", rate, modelled, False
        )


def caches(micro: Micro) -> Iterator[ComparedFigure]:
    """Bandwidth of caches: sets in the L1, sets in the L2, and regions of the L2 that change.

    The last one is another program than the others. The two measured the same L2 with 27 and 19.5
    TB/s, and the model lies between them.
    """
    for kilobytes, loads, passes, rate in (
        (16, 2, 512, 38.9),
        (128, 16, 64, 28.2),
        (2048, 16, 4, 26.9),
    ):
        words = kilobytes * 128
        short, long = (
            micro.seconds(f"cached{loads}", 608, 1024, 0, _ARENA - (1 << 20), words, 0, n)
            for n in (passes // 4, passes)
        )
        moved = 608 * kilobytes * 1024 * (passes - passes // 4)
        modelled = moved / (long - short) / 1e12
        yield ComparedFigure("cache bandwidth", f"{kilobytes} KiB", "TB/s", rate, modelled, True)
    short, long = (
        micro.seconds("regions", n, 1024, 0, _ARENA - (1 << 20), 3) for n in (1216, 3648)
    )
    modelled = 2432 * 64 * 1024 * 8 / (long - short) / 1e12
    yield ComparedFigure("cache bandwidth", "3 regions", "TB/s", 19.5, modelled, True)


def starts(micro: Micro) -> Iterator[ComparedFigure]:
    """Time of workgroups that copy 128 bytes, as a measurement between events reads it."""
    for count, measured in ((4096, 6.2), (16384, 11.7)):
        seconds = micro.seconds("copy_halves", count, 64, 0, _ARENA // 2) - hw.LAUNCH_S
        modelled = max(GEAK_FLOOR_US, seconds * 1e6 + GEAK_OVERHEAD_US)
        yield ComparedFigure("workgroup starts", str(count), "us", measured, modelled, True)


def one_unit(micro: Micro) -> Iterator[ComparedFigure]:
    """G instructions x lanes a second of one compute unit by instruction and number of waves."""
    measured = {
        "add_f32": (33.2, 133.4, 83.7, 133.8),
        "mul_f32": (33.2, 133.3, 83.6, 133.8),
        "add_f16": (33.2, 133.4, 83.7, 133.9),
        "fmac_f32": (33.3, 133.2, 83.4, 133.6),
        "fma_f32": (26.8, 107.1, 76.6, 122.5),
        "pk_add_f32": (16.6, 66.7, 83.3, 133.2),
        "pk_fma_f32": (16.6, 66.6, 83.3, 133.2),
        "pk_mul_f16": (16.7, 66.7, 83.4, 133.2),
        "fma_f64": (26.8, 107.1, 76.6, 122.5),
    }
    for name, rates in measured.items():
        for waves, rate in zip((1, 4, 5, 8), rates, strict=True):
            short, long = (
                micro.seconds(f"run_{name}", 1, 64 * waves, 0, times) for times in (20, 100)
            )
            modelled = 80 * 256 * 64 * waves / (long - short) / 1e9
            yield ComparedFigure(
                "one compute unit", f"{name} {waves}w", "G/s", rate, modelled, True
            )


def histogram_keys(count: int) -> np.ndarray:
    """Keys of 4,096 bins; one of eight is 0."""
    random = np.random.default_rng(0)
    keys = random.integers(0, 4096, count, np.uint32)
    keys[random.random(count) < 1 / 8] = 0
    return keys


def atomics(micro: Micro) -> Iterator[ComparedFigure]:
    """G keys a second that are counted in 4,096 bins: each, once a wave, and in LDS."""
    for name, point, measured in (
        ("histogram", "4096 bins", 0.777),
        ("histogram_waves", "4096 bins, once a wave", 0.917),
    ):
        rounds = 16
        seconds = micro.seconds(name, 608, 256, 0, rounds) - hw.LAUNCH_S
        rate = 608 * 256 * rounds / seconds / 1e9
        yield ComparedFigure("atomics", point, "G/s", measured, rate, True)
    rounds = 54  # 67,239,936 keys
    keys = rounds * 1216 * 1024
    micro.memory[: keys // 2] = histogram_keys(keys).view(np.uint64)
    seconds = micro.seconds("histogram_lds", 1216, 256, 0, _ARENA - (1 << 20), rounds)
    yield ComparedFigure("atomics", "4096 bins in LDS", "G/s", 661.0, keys / seconds / 1e9, True)


CURVES = (latency, loads_in_flight, streams, caches, one_unit, starts, atomics)


def summary(points: list[ComparedFigure]) -> dict[str, Any]:
    """Median and worst error by curve."""
    names = list(dict.fromkeys(point.curve for point in points))
    errors = {n: [abs(p.error) for p in points if p.curve == n] for n in names}
    return {
        name: {"points": len(e), "median": statistics.median(e), "worst": max(e)}
        for name, e in errors.items()
    }
