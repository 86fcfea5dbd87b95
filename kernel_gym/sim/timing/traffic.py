"""Bytes that a launch moves at each level of the memory hierarchy.

Distinct lines and requests of the whole launch are counted exactly. The share of requests that miss
the first-level cache comes from the sampled workgroups.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gym.sim import constants as hw


@dataclass(frozen=True)
class Traffic:
    """Bytes by level.

    Attributes:
        l2: Requests of compute units to the L2 caches.
        mall: Requests of the L2 caches to the Infinity Cache, written lines included.
        hbm: Bytes that reach memory.
        far_fraction: Share of L1 misses that also miss L2.
        memory_fraction: Share of these that also miss the Infinity Cache.
        l2_fits: Share of the lines that the L2 caches hold.
        mall_fits: Share of the lines that the Infinity Cache holds.
    """

    l2: float
    mall: float
    hbm: float
    far_fraction: float
    memory_fraction: float
    l2_fits: float = 1.0
    mall_fits: float = 1.0

    def latencies(self, idle: hw.Latencies) -> hw.Latencies:
        """Cycles of loads by where the line is if the caches hold what fits into them.

        Lines that several chiplets or workgroups fetch come from there. A line's first load
        always comes from memory.
        """
        mall = idle.mall + (1 - self.mall_fits) * (idle.hbm - idle.mall)
        l2 = idle.l2 + (1 - self.l2_fits) * (mall - idle.l2)
        return hw.Latencies(idle.l1, l2, mall, idle.hbm)


def scratch_latency(used: int, figures: hw.Figures) -> float:
    """Cycles of a load from scratch. The L2 has what fits; the Infinity Cache has the rest.

    Args:
        used: Bytes of scratch of all waves that are resident at the same time.
        figures: Constants of the device.
    """
    fits = min(1.0, figures.chiplets * figures.l2_bytes / used) if used else 1.0
    return figures.latencies.l2 + (1 - fits) * (figures.latencies.mall - figures.latencies.l2)


def estimate_traffic(
    read_requests: float,
    write_segments: float,
    read_lines: int,
    written_lines: int,
    figures: hw.Figures = hw.MI300X,
    chiplets: float | None = None,
    fetches: float | None = None,
) -> Traffic:
    """Estimates traffic from requests and distinct lines, with cold caches.

    Each chiplet has its own L2, so each of them may fetch a line, but not more often than
    workgroups do. Repeated requests hit as far as the distinct lines fit. The L2 writes back: a
    written line leaves it once.

    Args:
        read_requests: Lines that loads requested from L2, whole launch.
        write_segments: 64-byte pieces that stores sent to L2, whole launch.
        read_lines: Distinct lines read.
        written_lines: Distinct lines written.
        figures: Constants of the device.
        chiplets: How many of its dies have work; by default all.
        fetches: Lines that workgroups requested for the first time, summed over all workgroups;
            by default as many as there are requests.

    Returns:
        The bytes.
    """
    line = hw.LINE_BYTES
    chiplets = chiplets or figures.chiplets
    footprint = (read_lines + written_lines) * line
    l2_fits = min(1.0, chiplets * figures.l2_bytes / footprint) if footprint else 1.0
    mall_fits = min(1.0, figures.mall_bytes / footprint) if footprint else 1.0
    fetches = read_requests if fetches is None else max(fetches, float(read_lines))
    first = min(read_requests, float(read_lines * chiplets), fetches)
    l2_misses = first + (read_requests - first) * (1 - l2_fits)
    cold = min(float(read_lines), l2_misses)
    mall_misses = cold + (l2_misses - cold) * (1 - mall_fits)
    return Traffic(
        l2=read_requests * line + write_segments * 64,
        mall=(l2_misses + written_lines) * line,
        hbm=(max(mall_misses, read_lines) + written_lines) * line,
        far_fraction=min(1.0, l2_misses / read_requests) if read_requests else 0.0,
        memory_fraction=mall_misses / l2_misses if l2_misses else 0.0,
        l2_fits=l2_fits,
        mall_fits=mall_fits,
    )
