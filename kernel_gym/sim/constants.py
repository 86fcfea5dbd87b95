"""Constants of AMD GPUs that the timing model uses, each with its source.

Constants outside of :class:`Figures` were collected for the MI300X. The other GPUs use them too.

SEEN: read in a public source: [C&C] Chips and Cheese, "Testing AMD's Giant MI300X" (2024), and the
hardware table of the ROCm documentation. RECALLED: from [WP] AMD's CDNA3 white paper (2023), [ISA]
AMD's CDNA3 instruction set manual or the data sheet, from memory. DERIVED: computed from published
peaks. FITTED: chosen to meet a published figure, which is then no part of the validation. ASSUMED:
our estimate, uncertain, to be calibrated against measurements. Absolute times are therefore
indications; use the ratios and ranks. docs/timing-model.md explains how each constant is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# ---- layout
SIMDS = 4  # RECALLED: a compute unit
MAX_WAVES_PER_SIMD = 8  # RECALLED
VECTOR_REGISTERS = 512  # RECALLED: a lane and SIMD, vector and accumulation together
VECTOR_GRANULE = 8  # RECALLED
SCALAR_REGISTERS = 800  # RECALLED: a SIMD; no practical limit with 8 waves of 100
LDS_GRANULE = 512  # RECALLED
MAX_WORKGROUPS_PER_CU = 32  # RECALLED: barrier resources
WAVE_LANES = 64  # SEEN
LINE_BYTES = 128  # RECALLED: cache line of L1, L2 and Infinity Cache

# ---- rates
HBM_EFFICIENCY = 0.80  # ASSUMED
MALL_EFFICIENCY = 0.70  # RECALLED: 11.9 TB/s measured by [C&C]
# FITTED: the share of the matrix peak that the power limit allows in a long run: 654 (fp16) and 708
# (bf16) of 1,307 TFLOP/s in AMD's "Measuring max-achievable FLOPs" (ROCm blog, 2025; recalled).
MATRIX_SUSTAINED = 0.53
L2_EFFICIENCY = 0.70  # ASSUMED
CU_BYTES_PER_CLOCK = 50  # ASSUMED: what one compute unit can read from beyond its L1

# ---- fixed costs
EXPOSED_SHARE = 0.1  # ASSUMED: part of the shorter terms that the longest one does not hide
LAUNCH_S = 2e-6  # ASSUMED: from dispatch to the first wave, and the end of the kernel

# ---- atomics and handovers between workgroups
# FITTED to a histogram on an MI300X: 67,108,864 atomic additions to 4,096 bins, of which one gets
# 12.5 %, take 86.4 ms (LaelaZorana/kernel-grader-mi300x-rocm-trainium-nki@50e9a9d8,
# reports/kernel-rocm.json). With one addition a wave and bin they take 73.2 ms. So the fullest bin
# does not decide, and fewer lines are not assumed to be slower.
ATOMIC_LINES = 128  # cache lines that those bins fill
ATOMIC_REQUESTS_PER_S = 0.62e9  # to that many lines or fewer; ASSUMED to grow with more
# A flag goes to another chiplet and back in 1.44 to 1.6 us (SEEN: fleet-mi300x@093e8ce6).
HANDOVER_S = 0.72e-6

# ---- cycles of a compute unit
VECTOR_CYCLES = 4  # RECALLED: 64 lanes on 16
SLOW_VECTOR_CYCLES = 16  # RECALLED: transcendental functions, 32-bit integer multiplication
WIDE_VECTOR_CYCLES = 8  # ASSUMED: 64-bit operations other than fused multiply-add
PERMUTE_CYCLES = 2  # ASSUMED: permutes pass 32 lanes a cycle through the LDS crossbar
UNSAMPLED_LDS_CYCLES = 16  # ASSUMED: an LDS access that no sample ran
LDS_LATENCY = 64  # ASSUMED
L1_LATENCY = 120  # ASSUMED
L2_LATENCY = 300  # ASSUMED
MALL_LATENCY = 650  # ASSUMED
HBM_LATENCY = 900  # ASSUMED
SCALAR_LATENCY = 200  # ASSUMED
STORE_LATENCY = 100  # ASSUMED: until a store no longer counts as outstanding
WORKGROUP_LAUNCH = 200  # ASSUMED: between workgroups that start on one compute unit
L2_BYTES_PER_CYCLE = 64  # RECALLED: L1 fill of one compute unit
MATRIX_MINIMUM_CYCLES = 8  # RECALLED: the shortest matrix instruction


@dataclass(frozen=True)
class Figures:
    """The constants that differ between the targets.

    Attributes:
        compute_units: Compute units of the device.
        chiplets: Dies that have an L2 each.
        lds_bytes: LDS of a compute unit.
        clock_hz: Peak engine clock.
        hbm_bytes_per_s: Peak of the memory.
        mall_bytes_per_s: Peak of the Infinity Cache; infinite if there is none.
        mall_bytes: Size of the Infinity Cache; 0 if there is none.
        l2_bytes: Size of a chiplet's L2.
        l2_channels: Channels of a chiplet's L2, of 128 bytes a clock each.
        matrix_operations: A cycle and compute unit, by type number of
            :mod:`kernel_gym.sim.compiler.matrix_ops`: 16-bit floats 0 and 1, i8 2, 8-bit floats 3
            to 6, f32 7, xf32 8, f64 9. DERIVED from the published dense peaks at these units and
            clocks.
    """

    compute_units: int
    chiplets: int
    lds_bytes: int
    clock_hz: float
    hbm_bytes_per_s: float
    mall_bytes_per_s: float
    mall_bytes: int
    l2_bytes: int
    l2_channels: int
    matrix_operations: tuple[int, ...]

    @property
    def l2_bytes_per_s(self) -> float:
        """Peak of all L2 caches together."""
        return self.chiplets * self.l2_channels * 128 * self.clock_hz


FIGURES = {
    # RECALLED: AMD's CDNA2 white paper and data sheet; one of the two dies, which has no Infinity
    # Cache. 191.5 TFLOP/s for 16 bits and i8, 47.9 for f32 and f64; no 8-bit floats and no xf32.
    "gfx90a": Figures(
        *(110, 1, 64 << 10, 1.7e9, 1.638e12, math.inf, 0, 8 << 20, 32),
        (1024, 1024, 1024, 0, 0, 0, 0, 256, 0, 256),
    ),
    # SEEN, except the clock, the rate of the Infinity Cache [WP] and the L2 channels (RECALLED).
    # 1,307 TFLOP/s for f16, 2,614 for fp8 and i8, 653 for xf32, 163 for f32 and f64.
    "gfx942": Figures(
        *(304, 8, 64 << 10, 2.1e9, 5.3e12, 17.2e12, 256 << 20, 4 << 20, 16),
        (2048, 2048, 4096, 4096, 4096, 4096, 4096, 256, 1024, 256),
    ),
    # RECALLED: AMD's CDNA4 white paper and data sheet; the rate of the Infinity Cache ASSUMED as of
    # the MI300X. 2,500 TFLOP/s for 16 bits, 5,000 for fp8 and i8, 157 for f32, 79 for f64. The
    # higher rate of the 6- and 4-bit floats is not modelled.
    "gfx950": Figures(
        *(256, 8, 160 << 10, 2.4e9, 8.0e12, 17.2e12, 256 << 20, 4 << 20, 16),
        (4096, 4096, 8192, 8192, 8192, 8192, 8192, 256, 0, 128),
    ),
}
MI300X = FIGURES["gfx942"]
