"""Measures the simulator: speed against Triton's interpreter, threads, sampling, timing model.

As a module under ``TRITON_INTERPRET=1`` it times the interpreter and prints one line a case.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.simulator.kernels import BenchCase, speed_cases, stream_case
from kernel_gym.sim.engine.engine import Engine, Kernel, LaunchResult, pack_kernarg
from kernel_gym.triton_versions import ENVIRONMENT

INTERPRETED_PROGRAMS = 4
REPEATS = 31
VALIDATION = Path(__file__).with_name("validation.json")
_ARENA = 1 << 30
_STREAM_SIZES = (
    1 << 21,
    1 << 22,
)  # with smaller sizes the start of a launch hides part of the difference


class Bench:
    """An engine with its own memory, and the cases compiled for it."""

    def __init__(self) -> None:
        """Create the engine and map its memory."""
        self.engine = Engine()
        self._buffer = mmap.mmap(-1, _ARENA)
        self._base = np.frombuffer(self._buffer, np.uint8).ctypes.data
        self.engine.set_memory(self._base, _ARENA)

    def prepare(self, case: BenchCase) -> Callable[..., LaunchResult]:
        """A function that launches the case on one thread or ``threads``.

        Its other options are those of ``Engine.launch``.
        """
        kernel = compiled(self.engine, case)
        values, spans, at = [], [], 0
        for value in case.make():
            if not isinstance(value, torch.Tensor):
                values.append(value.to_bytes(4, "little"))
                continue
            size = value.nbytes
            place = torch.frombuffer(
                self._buffer, dtype=value.dtype, count=value.numel(), offset=at
            )
            place.copy_(value.reshape(-1))
            values.append((self._base + at).to_bytes(8, "little"))
            spans.append((self._base + at, size, f"argument {len(values)}"))
            at += -(-size // 4096) * 4096 + 4096
        self.engine.set_allocations(spans)
        block = (64 * case.warps,)
        kernarg = pack_kernarg(kernel, values, case.grid, block)

        def launch(threads: int = 1, **options: Any) -> LaunchResult:
            self.engine.threads = threads
            result = self.engine.launch(
                kernel, case.grid, block, kernarg, time_limit_s=120.0, **options
            )
            if result.fault:
                raise RuntimeError(f"{case.name}: {result.fault.message}")
            return result

        return launch


def compiled(engine: Engine, case: BenchCase) -> Kernel:
    """The case's kernel, compiled by Triton for gfx942 and loaded."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    os.environ.update(ENVIRONMENT)
    names = case.kernel.arg_names
    signature = dict(zip([n for n in names if n not in case.constants], case.types, strict=True))
    signature = {name: signature.get(name, "constexpr") for name in names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if n in signature}
    aligned = {k: v for k, v in aligned.items() if signature[names[k[0]]] != "constexpr"}
    binary = triton.compile(
        ASTSource(case.kernel, signature, case.constants, attrs=aligned),
        target=GPUTarget("hip", "gfx942", 64),
        options={"num_warps": case.warps, "num_stages": 2},
    )
    return engine.load(binary.asm["amdgcn"], shared=binary.metadata.shared)


def least_seconds(*calls: Callable[[], Any]) -> list[dict[Callable[[], float], float]]:
    """Least time of each call, by clock. Calls alternate, so that other load affects all."""
    clocks = (time.process_time, time.perf_counter)  # other load changes process time little
    least = [dict.fromkeys(clocks, math.inf) for _ in calls]
    for call in calls:
        call()
    for _ in range(REPEATS):
        for call, known in zip(calls, least, strict=True):
            start = [clock() for clock in clocks]
            call()
            for clock, before in zip(clocks, start, strict=True):
                known[clock] = min(known[clock], clock() - before)
    return least


def simulate(case: BenchCase, bench: Bench) -> dict[str, Any]:
    """Times of the simulator, and its modelled times with samples and with a full trace."""
    launch = bench.prepare(case)
    plain, modelled, two = least_seconds(
        lambda: launch(model_time=False),
        launch,
        lambda: launch(model_time=False, threads=2),
    )
    sampled, full = launch().seconds or 0.0, launch(full_trace=True).seconds or 0.0
    return {
        "name": case.name,
        "workgroups": case.workgroups,
        "plain_s": plain[time.process_time],
        "instrumented": modelled[time.process_time] / plain[time.process_time],
        "two_threads": plain[time.perf_counter] / two[time.perf_counter],
        "modelled_us": sampled * 1e6,
        "sampling_error": sampled / full - 1,
    }


def interpret() -> Iterator[dict[str, float]]:
    """Yields seconds of each case in Triton's interpreter, extrapolated from few programs."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.simulator.benchmark"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        for line in child.stdout:
            yield json.loads(line)
    if child.returncode:
        raise RuntimeError(f"the interpreter's side ended with status {child.returncode}")


def _interpret_here() -> None:
    torch.set_num_threads(1)
    for case in speed_cases():
        arguments = case.make()
        programs = min(INTERPRETED_PROGRAMS, case.grid[0])
        grid = (programs, *(1 for _ in case.grid[1:]))
        case.kernel[grid](*arguments, **case.constants)
        start = time.process_time()
        case.kernel[grid](*arguments, **case.constants)
        spent = time.process_time() - start
        print(json.dumps({"name": case.name, "s": spent / programs * case.workgroups}), flush=True)


def compare_published(bench: Bench) -> dict[str, Any]:
    """Compares the model with published figures: errors, and order of pairs 1.3x apart."""
    published = json.loads(VALIDATION.read_text(encoding="utf-8"))["figures"]
    rows = []
    for figure in published:
        modelled = _model_figure(figure, bench)
        error = modelled / figure["value"] - 1
        rows.append({**figure, "modelled": modelled, "error": error})
    pairs = [
        (a, b)
        for i, a in enumerate(rows)
        for b in rows[i + 1 :]
        if a["unit"] == b["unit"] and abs(math.log(a["value"] / b["value"])) >= math.log(1.3)
    ]
    right = sum((a["value"] < b["value"]) == (a["modelled"] < b["modelled"]) for a, b in pairs)
    return {
        "figures": rows,
        "median_error": statistics.median(abs(row["error"]) for row in rows),
        "pairs": len(pairs),
        "pairs_in_order": right,
    }


def _model_figure(figure: dict[str, Any], bench: Bench) -> float:
    if figure["kind"] == "gemm":
        return gemm_rate(figure["size"], figure["dtype"]) / 1e12
    small, large = (
        bench.prepare(stream_case(figure["name"], count))().seconds or 0.0
        for count in _STREAM_SIZES
    )
    arrays = {"copy": 2, "mul": 2, "dot": 2, "add": 3, "triad": 3}[figure["name"]]
    moved = 8 * arrays * (_STREAM_SIZES[1] - _STREAM_SIZES[0])
    return moved / (large - small) / 1e12


def gemm_rate(size: int, dtype: str) -> float:
    """FLOP/s of a square matrix product in the model of torch operators."""
    from kernel_gym.hardware import MI300X

    kind = getattr(torch, dtype)
    flops = 2 * size**3
    return flops / MI300X.operator_seconds(3 * size * size * kind.itemsize, flops, kind)


if __name__ == "__main__":
    _interpret_here()
