"""The time a launch would take on an MI300X, modelled from what the launch did.

``T = launch + max(compute units, HBM, L2, Infinity Cache)``, plus a tenth of the three shorter
terms because overlap is never perfect. The compute-unit time comes from a replay of sampled
workgroups (csrc/timing.cpp), spread over all workgroups by their instruction counts. Memory
traffic: the distinct lines that the whole launch touched are counted exactly; requests beyond
the L1 are scaled up from the samples. The constants are not calibrated against hardware: use
ratios and ranks.
"""

from __future__ import annotations

import ctypes as ct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernel_gym.sim import constants as hw
from kernel_gym.sim import native
from kernel_gym.sim.decode import DecodedKernel
from kernel_gym.sim.occupancy import Occupancy
from kernel_gym.sim.timed import UNITS, timing_tables, unit_of

HOT_INSTRUCTIONS = 8  # in a profile
_REPLAY_SHARE = 4  # one replayed instruction for this many executed ones ...
_REPLAY_MINIMUM, _REPLAY_MAXIMUM = 20_000, 200_000  # ... within these bounds
_SAMPLE_SHARE, _SAMPLE_MAXIMUM = 16, 4  # one recorded workgroup for this many, at most

IntArray = npt.NDArray[np.int64]


def sample_count(workgroups: int) -> int:
    """How many workgroups of a launch are recorded for the model."""
    return max(1, min(_SAMPLE_MAXIMUM, workgroups // _SAMPLE_SHARE))


class KernelTiming:
    """Static timing facts of a kernel: what its instructions occupy."""

    def __init__(self, library: native.Library, handle: int, decoded: DecodedKernel) -> None:
        """Hand the tables to the engine library."""
        instructions, blocks = timing_tables(decoded)
        library.api.sim_program_set_timing(handle, instructions, blocks)
        self.units = np.array(
            [UNITS.index(unit_of(i.mnemonic)) for i in decoded.instructions], dtype=np.int64
        )
        self.block_lengths = np.array(
            [block.last - block.first for block in decoded.builder.blocks], dtype=np.int64
        )

    def executions(self, block_counts: IntArray) -> IntArray:
        """How often each instruction ran (by wave)."""
        return np.repeat(block_counts, self.block_lengths)

    def mix(self, executions: IntArray) -> dict[str, int]:
        """Wave instructions by unit."""
        totals = np.bincount(self.units, weights=executions, minlength=len(UNITS))
        return {name: int(totals[i]) for i, name in enumerate(UNITS) if totals[i]}


@dataclass(frozen=True)
class Traffic:
    """Bytes that a launch moves at each level of the memory hierarchy."""

    l2: float
    mall: float
    hbm: float
    far_fraction: float  # of L1 misses that also miss L2


def estimate_traffic(
    read_requests: float, write_segments: float, read_lines: int, written_lines: int
) -> Traffic:
    """Traffic from requests and distinct lines.

    Args:
        read_requests: Lines that loads requested from L2, whole launch.
        write_segments: 64-byte pieces that stores sent to L2, whole launch.
        read_lines: Distinct lines read.
        written_lines: Distinct lines written.

    Returns:
        The bytes. Each chiplet has its own L2, so a line may be fetched by up to eight of them;
        repeated requests hit as far as the distinct lines fit.
    """
    line = hw.LINE_BYTES
    footprint = (read_lines + written_lines) * line
    l2_fits = min(1.0, hw.CHIPLETS * hw.L2_BYTES / footprint) if footprint else 1.0
    mall_fits = min(1.0, hw.MALL_BYTES / footprint) if footprint else 1.0
    first = min(read_requests, float(read_lines * hw.CHIPLETS))
    l2_misses = first + (read_requests - first) * (1 - l2_fits)
    mall_misses = read_lines + max(0.0, l2_misses - read_lines) * (1 - mall_fits)
    return Traffic(
        l2=read_requests * line + write_segments * 64,
        mall=(l2_misses + written_lines) * line,
        hbm=(min(mall_misses, max(read_requests, read_lines)) + written_lines) * line,
        far_fraction=min(1.0, l2_misses / read_requests) if read_requests else 0.0,
    )


@dataclass(frozen=True)
class Modelled:
    """A modelled time and how it came about."""

    seconds: float
    profile: dict[str, Any]


def _model_request(
    traffic: Traffic, residency: Occupancy, workgroups: int, executed: int
) -> native.ModelRequest:
    copies = max(1, min(residency.workgroups_per_cu, -(-workgroups // hw.COMPUTE_UNITS)))
    budget = min(_REPLAY_MAXIMUM, max(_REPLAY_MINIMUM, executed // _REPLAY_SHARE))
    return native.ModelRequest(
        lds_latency=hw.LDS_LATENCY,
        l1_latency=hw.L1_LATENCY,
        l2_latency=hw.L2_LATENCY,
        hbm_latency=hw.HBM_LATENCY,
        scalar_latency=hw.SCALAR_LATENCY,
        store_latency=hw.STORE_LATENCY,
        workgroup_launch=hw.WORKGROUP_LAUNCH,
        l2_bytes_per_cycle=hw.L2_BYTES_PER_CYCLE,
        far_fraction=traffic.far_fraction,
        instruction_budget=budget,
        slots=copies * hw.COMPUTE_UNITS,
        copies=copies,
    )


def model_launch(
    library: native.Library,
    engine: int,
    program: int,
    timing: KernelTiming,
    launch: native.LaunchRequest,
    residency: Occupancy,
) -> Modelled:
    """Model the launch that the engine has just run with sampling on.

    Args:
        library: The engine library.
        engine: Its engine handle.
        program: The program handle.
        timing: Static facts of the kernel.
        launch: The request, with results.
        residency: Workgroups on a compute unit.
    """
    api = library.api
    count = len(timing.units)
    accesses = np.ctypeslib.as_array(api.sim_accesses(engine), (count, 8)).astype(np.float64)
    column = {name: accesses[:, i] for i, name in enumerate(native.ACCESS_FIELDS)}
    stores = column["writes"] > 0
    memory = timing.units == UNITS.index("memory")
    scale = launch.instructions / max(1, launch.sampled_instructions)
    traffic = estimate_traffic(
        scale * float(column["l1_misses"][memory & ~stores].sum()),
        scale * float(column["segments"][memory & stores].sum()),
        launch.read_lines,
        launch.written_lines,
    )
    workgroups = launch.grid[0] * launch.grid[1] * launch.grid[2]
    request = _model_request(traffic, residency, workgroups, launch.instructions)
    api.sim_model(engine, program, ct.byref(request))
    spent = np.ctypeslib.as_array(api.sim_spent(engine), (count,)).copy()
    return _combine(timing, launch, request, traffic, residency, spent, api, engine)


def _combine(
    timing: KernelTiming,
    launch: native.LaunchRequest,
    request: native.ModelRequest,
    traffic: Traffic,
    residency: Occupancy,
    spent: npt.NDArray[np.float64],
    api: Any,
    engine: int,
) -> Modelled:
    workgroups = launch.grid[0] * launch.grid[1] * launch.grid[2]
    busy_units = min(workgroups, hw.COMPUTE_UNITS)
    pull = busy_units * hw.CU_BYTES_PER_CLOCK * hw.CLOCK_HZ
    seconds = {
        "cu": request.makespan / hw.CLOCK_HZ,
        "hbm": max(traffic.hbm / (hw.HBM_BYTES_PER_S * hw.HBM_EFFICIENCY), traffic.hbm / pull),
        "l2": traffic.l2 / (hw.L2_BYTES_PER_S * hw.L2_EFFICIENCY),
        "mall": traffic.mall / hw.MALL_BYTES_PER_S,
    }
    bound = max(seconds, key=lambda name: seconds[name])
    hidden = sum(seconds.values()) - seconds[bound]
    total = hw.LAUNCH_S + seconds[bound] + hw.EXPOSED_SHARE * hidden
    blocks = np.ctypeslib.as_array(
        api.sim_block_counts(engine), (len(timing.block_lengths),)
    ).astype(np.int64)
    profile = {
        "bound_by": bound,
        "occupancy": {
            "waves_per_simd": residency.waves_per_simd,
            "workgroups_per_cu": residency.workgroups_per_cu,
            "limiter": residency.limiter,
        },
        **{f"{name}_us": value * 1e6 for name, value in seconds.items()},
        "launch_us": hw.LAUNCH_S * 1e6,
        "bytes": {
            "read": launch.read_lines * hw.LINE_BYTES,
            "written": launch.written_lines * hw.LINE_BYTES,
            "hbm": round(traffic.hbm),
            "mall": round(traffic.mall),
            "l2": round(traffic.l2),
        },
        "wave_instructions": timing.mix(timing.executions(blocks)),
        "utilisation": _utilisation(request, launch.sampled),
        "hot": _hot(spent),
    }
    return Modelled(total, profile)


def _utilisation(request: native.ModelRequest, samples: int) -> dict[str, float]:
    """Share of the time that each unit of a compute unit is busy, in the replay."""
    cycles = request.workgroup_cycles * max(1, samples)
    pipes = {"vector": hw.SIMDS, "matrix": hw.SIMDS, "lds": 1, "memory": 1}
    return {
        name: round(min(1.0, request.busy[UNITS.index(name)] / (cycles * count)), 4)
        if cycles
        else 0.0
        for name, count in pipes.items()
    }


def _hot(spent: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
    """The instructions at which waves spend most time: index and share."""
    total = float(spent.sum())
    if total <= 0:
        return []
    order = np.argsort(-spent, kind="stable")[:HOT_INSTRUCTIONS]
    return [
        {"instruction": int(i), "share": round(float(spent[i]) / total, 4)}
        for i in order
        if spent[i] > 0
    ]
