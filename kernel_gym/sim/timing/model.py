"""The time a launch would take on an MI300X, modelled from what the launch did.

``T = launch + (units^p + memory^p)^(1/p)``. ``units`` is the larger one of compute units and
sustained matrix rate, ``memory`` the longest of HBM, L2, Infinity Cache and atomics with a tenth of
the others. The exponent p goes from 2, if waves only wait for memory, to 8, if they never do.

Sampled workgroups are replayed on one compute unit (csrc/timing/), which gives each basic block a
cost. The blocks, accesses and distinct lines of *all* workgroups are counted exactly and multiply
these costs. So the samples decide the cost of work, never the amount of work. A block that no
sample ran costs its full latencies.

docs/timing-assumptions.md states the assumptions, docs/timing-validation.md compares figures.
"""

from __future__ import annotations

import ctypes as ct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from kernel_gym.sim import constants as hw
from kernel_gym.sim import layouts, native
from kernel_gym.sim.compiler.decode import DecodedKernel
from kernel_gym.sim.compiler.timing_tables import (
    UNITS,
    can_wait_for_others,
    timed_instruction,
    timing_tables,
    unit_of,
)
from kernel_gym.sim.timing.conflicts import bank_conflicts
from kernel_gym.sim.timing.occupancy import Occupancy
from kernel_gym.sim.timing.profile import describe_profile
from kernel_gym.sim.timing.traffic import Traffic, estimate_traffic, scratch_latency

_REPLAY_SHARE = 8  # executed instructions for each replayed one
_REPLAY_MINIMUM, _REPLAY_MAXIMUM = 400_000, 1_600_000  # bounds of replayed instructions
_SHARES = 8  # smaller amounts of work that do not wait, see `combined`
_SAMPLE_SHARE = 16  # workgroups for each recorded one
_SAMPLE_MINIMUM, _SAMPLE_MAXIMUM = 12, 64  # bounds of recorded workgroups
MAX_GUESSED_SHARE = 0.02
"""Most of a modelled time that may come from full latencies before more workgroups are recorded."""
MAX_UNRECORDED_SHARE = 0.1
"""The same for the share of the cycles in classes without a recorded workgroup."""

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def sample_count(workgroups: int) -> int:
    """How many workgroups of a launch are recorded for the model."""
    wanted = min(_SAMPLE_MAXIMUM, max(_SAMPLE_MINIMUM, workgroups // _SAMPLE_SHARE))
    return min(workgroups, wanted)


def l1_sets(residency: Occupancy, workgroups: int, figures: hw.Figures) -> int:
    """Sets of the L1 that each workgroup has for itself on a compute unit that several share."""
    copies = min(residency.workgroups_per_cu, -(-workgroups // figures.compute_units))
    return max(1, figures.l1_sets // max(1, copies))


class KernelTiming:
    """The static part of a kernel's timing: the units and cycles of its instructions."""

    def __init__(
        self, library: native.Library, handle: int, decoded: DecodedKernel, figures: hw.Figures
    ) -> None:
        """Hand the tables to the engine library."""
        self.figures = figures
        self.watched = can_wait_for_others(decoded.instructions)
        instructions, blocks = timing_tables(decoded, figures)
        library.api.sim_program_set_timing(handle, instructions, blocks)
        self.units = np.array(
            [UNITS.index(unit_of(i.mnemonic)) for i in decoded.instructions], dtype=np.int64
        )
        registers = decoded.builder.vector_registers
        matrix = UNITS.index("matrix")
        self.matrix_cycles = np.array(
            [
                timed_instruction(i, registers, figures).cycles if unit == matrix else 0
                for i, unit in zip(decoded.instructions, self.units, strict=True)
            ],
            dtype=np.int64,
        )
        self.sizes = np.array([i.size for i in decoded.instructions], dtype=np.int64)
        self.block_lengths = np.array(
            [block.last - block.first for block in decoded.builder.blocks], dtype=np.int64
        )

    def executions(self, block_counts: IntArray) -> IntArray:
        """How often waves ran each instruction."""
        return np.repeat(block_counts, self.block_lengths)

    def mix(self, executions: IntArray) -> dict[str, int]:
        """Wave instructions by unit."""
        totals = np.bincount(self.units, weights=executions, minlength=len(UNITS))
        return {name: int(totals[i]) for i, name in enumerate(UNITS) if totals[i]}


@dataclass(frozen=True)
class Modelled:
    """A modelled time with its profile."""

    seconds: float
    profile: dict[str, Any]
    guessed: float
    """The share of the time that comes from full latencies, as no recorded wave ran such work."""
    unrecorded: float
    """The share of the cycles of all workgroups in classes without a recorded one."""

    @property
    def well_recorded(self) -> bool:
        """Whether the recorded workgroups say what the launch costs."""
        return self.guessed <= MAX_GUESSED_SHARE and self.unrecorded <= MAX_UNRECORDED_SHARE


class Trace(Enum):
    """How many workgroups of a launch the timing model records."""

    NONE = "none"
    SAMPLED = "sampled"
    FULL = "full"

    def ask(self, request: layouts.LaunchRequest, workgroups: int, seed: int) -> None:
        """Writes into a request what the launch must record for the model."""
        if self is not Trace.NONE:
            request.sample_count = workgroups if self is Trace.FULL else sample_count(workgroups)
            request.footprint = 1
            request.sample_seed = seed & (1 << 64) - 1


def combined(terms: Mapping[str, float], waiting: float) -> float:
    """Seconds of a launch from the seconds of its parts.

    Args:
        terms: From :meth:`LaunchModel._terms`.
        waiting: Share of its time that a wave waits for memory, at most.

    More work that does not wait makes the share smaller, and memory overlaps better. It must not
    make the launch faster. So the result is the largest one of the launch and of those with less
    of that work.
    """
    memory = [terms[name] for name in ("hbm", "mall", "l2", "atomics")]
    moving = max(memory) + hw.EXPOSED_SHARE * (sum(memory) - max(memory))
    shares = [waiting + (1 - waiting) * step / _SHARES for step in range(_SHARES + 1)]
    return max(
        _overlapped(
            moving, max(terms["cu"] * (waiting / share if share else 1), terms["matrix"]), share
        )
        for share in (shares if waiting else [0.0])
    )


def _overlapped(moving: float, working: float, waiting: float) -> float:
    """Seconds of memory and of units together, with the share of the units' time that waits."""
    inverse = waiting / hw.WAITING_EXPONENT + (1 - waiting) / hw.HIDDEN_EXPONENT
    larger, smaller = max(moving, working), min(moving, working)
    if not larger:
        return 0.0
    return float(larger * (1 + (smaller / larger) ** (1 / inverse)) ** inverse)


class LaunchModel:
    """Models the launch that an engine has just run with samples.

    Args:
        library: The engine library.
        engine: Its engine handle.
        program: The program handle.
        timing: The static part of the kernel's timing.
        launch: The request, with results.
        residency: Workgroups on a compute unit.
    """

    def __init__(
        self,
        library: native.Library,
        engine: int,
        program: int,
        timing: KernelTiming,
        launch: layouts.LaunchRequest,
        residency: Occupancy,
    ) -> None:
        self._api, self._engine, self._program = library.api, engine, program
        self.timing, self.launch, self.residency = timing, launch, residency
        self.workgroups = launch.grid[0] * launch.grid[1] * launch.grid[2]
        blocks = self._read("sim_block_counts", len(timing.block_lengths))
        self.executions = timing.executions(blocks.astype(np.int64))
        # Workgroups that do next to nothing bring no cache and no bandwidth with them.
        self.busy_workgroups = max(1.0, launch.instructions / max(1, launch.most_instructions))

    def run(self, full_trace: bool = False) -> Modelled:
        """The modelled time with its profile. `full_trace` replays all recorded workgroups."""
        traffic = self._traffic()
        request = self._request(traffic)
        if full_trace:
            request.instruction_budget = 1 << 62
        self._api.sim_model(self._engine, self._program, ct.byref(request))
        spent = self._read("sim_spent", len(self.timing.units))
        terms = self._terms(request, traffic)
        total = hw.LAUNCH_S + combined(terms, request.waiting)
        profile = describe_profile(
            terms, total, request, traffic, self.residency, self.launch, spent
        )
        profile["code_bytes"] = int(self.timing.sizes[self.executions > 0].sum())
        profile["scratch_bytes"] = int(self.launch.scratch_size)
        profile["wave_instructions"] = self.timing.mix(self.executions)
        columns = len(layouts.field_names(layouts.AccessCounts))
        profile["bank_conflicts"] = bank_conflicts(
            self._read("sim_sampled", len(self.timing.units), columns)
        )
        return Modelled(total, profile, request.guessed, request.unrecorded)

    def _read(self, name: str, *shape: int) -> FloatArray:
        """A copy of an array of the engine."""
        view = np.ctypeslib.as_array(getattr(self._api, name)(self._engine), shape)
        return view.astype(np.float64)

    def _traffic(self) -> Traffic:
        names = layouts.field_names(layouts.AccessCounts)
        columns = len(names)
        exact = self._read("sim_accesses", len(self.timing.units), columns)
        sampled = self._read("sim_sampled", len(self.timing.units), columns)
        field = {name: i for i, name in enumerate(names)}
        seen = sampled[:, field["lines"]]
        memory = self.timing.units == UNITS.index("memory")
        stores = exact[:, field["writes"]] > 0
        scalar = self.timing.units == UNITS.index("scalar_memory")

        def loaded(name: str) -> float:
            share = np.where(seen > 0, sampled[:, field[name]] / np.maximum(seen, 1), 1.0)
            return float((exact[:, field["lines"]] * share)[memory & ~stores].sum())

        runs = sampled[:, field["executions"]]
        pieces = sampled[:, field["l1_misses"]] / np.maximum(runs, 1) * self.executions
        return estimate_traffic(
            loaded("l1_misses"),
            float(exact[:, field["segments"]][memory & stores].sum() + pieces[scalar].sum()),
            self.launch.read_lines,
            self.launch.written_lines,
            self.timing.figures,
            min(self.busy_workgroups, float(self.timing.figures.chiplets)),
            loaded("fetched"),
        )

    def _request(self, traffic: Traffic) -> layouts.ModelRequest:
        compute_units = self.timing.figures.compute_units
        copies = min(self.residency.workgroups_per_cu, -(-self.workgroups // compute_units))
        budget = self.launch.instructions // _REPLAY_SHARE
        threads = self.launch.block[0] * self.launch.block[1] * self.launch.block[2]
        latencies = traffic.latencies(self.timing.figures.latencies)
        return layouts.ModelRequest(
            lds_latency=hw.LDS_LATENCY,
            l1_latency=latencies.l1,
            l2_latency=latencies.l2,
            mall_latency=latencies.mall,
            hbm_latency=latencies.hbm,
            chiplets=min(self.busy_workgroups, float(self.timing.figures.chiplets)),
            scalar_latency=hw.SCALAR_LATENCY,
            store_latency=hw.STORE_LATENCY,
            workgroup_launch=hw.WORKGROUP_LAUNCH,
            l2_bytes_per_cycle=hw.L2_BYTES_PER_CYCLE,
            scratch_latency=self._scratch_latency(),
            miss_lines=self.timing.figures.miss_lines,
            unsampled_lds=hw.UNSAMPLED_LDS_CYCLES,
            handover=hw.HANDOVER_S * self.timing.figures.clock_hz,
            atomic_handover=self.timing.figures.clock_hz / hw.ATOMIC_REQUESTS_PER_S,
            start_interval=1 / hw.WORKGROUP_STARTS_PER_CYCLE,
            instruction_budget=min(_REPLAY_MAXIMUM, max(_REPLAY_MINIMUM, budget)),
            slots=copies * compute_units,
            workgroups=self.workgroups,
            copies=copies,
            waves=-(-threads // hw.WAVE_LANES),
        )

    def _scratch_latency(self) -> float:
        """Cycles of a load from scratch, which belongs to places of waves on compute units."""
        device, block = self.timing.figures, self.launch.block
        resident = min(self.workgroups, self.residency.workgroups_per_cu * device.compute_units)
        used = resident * block[0] * block[1] * block[2] * self.launch.scratch_size
        return scratch_latency(used, device)

    def _terms(self, request: layouts.ModelRequest, traffic: Traffic) -> dict[str, float]:
        """Seconds that each part of the device needs for its work."""
        device = self.timing.figures
        pull = hw.CU_BYTES_PER_CLOCK * device.clock_hz  # of a compute unit
        waited = device.miss_lines * hw.LINE_BYTES / device.latencies.hbm * device.clock_hz
        own = self.launch.most_own_lines * hw.LINE_BYTES / waited
        units_busy = min(self.busy_workgroups, device.compute_units)
        read = self.launch.read_lines * hw.LINE_BYTES
        spread = max(traffic.hbm / units_busy / pull, read / units_busy / waited)
        matrix = float((self.executions * self.timing.matrix_cycles).sum())
        units = device.compute_units * hw.SIMDS * device.clock_hz
        hbm = traffic.hbm / (device.hbm_bytes_per_s * hw.HBM_EFFICIENCY)
        return {
            "cu": request.makespan / device.clock_hz,
            "matrix": matrix / units / hw.MATRIX_SUSTAINED,
            "hbm": max(hbm, own, spread),
            "l2": traffic.l2 / (device.l2_bytes_per_s * hw.L2_EFFICIENCY),
            "mall": traffic.mall / (device.mall_bytes_per_s * hw.MALL_EFFICIENCY),
            "atomics": self._atomics(),
        }

    def _atomics(self) -> float:
        """Seconds that atomic operations need because they access the same lines."""
        launch = self.launch
        lines = max(1.0, launch.atomic_lines / hw.ATOMIC_LINES)
        requests: float = max(launch.atomic_requests / lines, float(launch.atomic_hottest))
        return requests / hw.ATOMIC_REQUESTS_PER_S
