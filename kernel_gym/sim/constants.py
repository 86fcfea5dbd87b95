"""Constants of AMD GPUs that the timing model uses, each with its source.

Constants outside of :class:`Figures` were collected for the MI300X. The other GPUs use them too.

MEASURED: computed from public measurements of an MI300X that split.toml in benchmarks/calibration
lists under `fit`: [LAT] pointer chases, [CU] instructions on one compute unit, [GEMM] libraries,
all three of the SC25 CDNA3 artifact (hibagus/SC25_AMD_CDNA3_Artifact@06e0811);
[FLEET] cklxx/fleet-mi300x@093e8ce6; [GEAK] AMD-AGI/GEAK-eval@516e01b2; [HIST]
LaelaZorana/kernel-grader-mi300x-rocm-trainium-nki@50e9a9d8. [XCD], of an MI355X:
`experiments/hbm_bandwidth_xcd/results` of jamesbowley/gfx950-gluon-tutorials@2fdc8b59.

SEEN: read in a public source: [C&C] Chips and Cheese, "Testing AMD's Giant MI300X" (2024), and the
hardware table of the ROCm documentation. RECALLED: from [WP] AMD's CDNA3 white paper (2023), [ISA]
AMD's CDNA3 instruction set manual or the data sheet, from memory. DERIVED: computed from published
peaks. FITTED: chosen to meet a published figure, which is then no part of the validation. ASSUMED:
our estimate, uncertain, to be calibrated against measurements. Absolute times are therefore
indications; use the ratios and ranks. docs/timing-assumptions.md explains how they are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

TIMING_MODEL_VERSION = "11"
"""Rises with every change of a modelled time. Records carry it; times of two versions differ."""
SAME_TIMES = {
    "gfx90a": frozenset(("9", "10", TIMING_MODEL_VERSION)),
    "gfx942": frozenset(("9", "10", TIMING_MODEL_VERSION)),
    "gfx950": frozenset((TIMING_MODEL_VERSION,)),  # version 11 changed this chip alone
}
"""By architecture: versions that give the same time to each launch without `further_runs`."""

# ---- layout
SIMDS = 4  # RECALLED: a compute unit
MAX_WAVES_PER_SIMD = 8  # RECALLED
VECTOR_REGISTERS = 512  # RECALLED: a lane and SIMD, vector and accumulation together
VECTOR_GRANULE = 8  # RECALLED
LDS_GRANULE = 512  # RECALLED
LDS_BANKS = 32  # SEEN: of 4 bytes (AMD, "Avoiding LDS bank conflicts", rocm.blogs)
MAX_WORKGROUPS_PER_CU = 32  # RECALLED: barrier resources
WAVE_LANES = 64  # SEEN
LINE_BYTES = 128  # RECALLED: cache line of L1, L2 and Infinity Cache

# ---- rates
HBM_EFFICIENCY = 0.80  # MEASURED: 4.24 of 5.3 TB/s with 8 loads in flight [FLEET]
MALL_EFFICIENCY = 0.70  # RECALLED: 11.9 TB/s measured by [C&C]; other programs measure 5 to 8.7
# MEASURED: the share of the matrix peak that a library reaches in a product of 8192^3 under the
# power limit: 837 (bf16) and 784 (fp16) of 1,307, 1,597 (fp8) of 2,615 TFLOP/s [GEMM].
MATRIX_SUSTAINED = 0.62
L2_EFFICIENCY = 0.70  # ASSUMED
CU_BYTES_PER_CLOCK = 50  # ASSUMED: what one compute unit can read from beyond its L1

# ---- fixed costs
# How latency and bandwidth add up: T = (cu^p + memory^p)^(1/p). If the waves of a compute unit only
# wait for memory, p is 2. MEASURED: with 1, 2, 4 and 8 loads in flight 304 workgroups read 2.59,
# 3.40, 3.74 and 4.24 TB/s [FLEET]; p = 2 gives 2.45, 3.47, 4.00 and 4.17. If they never wait for
# it, both overlap.
WAITING_EXPONENT = 2.0
HIDDEN_EXPONENT = 8.0  # ASSUMED: two equal terms take 9 % longer than one
EXPOSED_SHARE = 0.1  # ASSUMED: part of the shorter memory terms that the longest one does not hide
# MEASURED: blocks of 64 elements, 4,096 of them within the launch floor of 6.1 us and 16,384 in
# 11.7 [GEAK block_copy]: 0.45 to 0.6 ns a workgroup. One a cycle is 0.48 ns.
WORKGROUP_STARTS_PER_CYCLE = 1.0
LAUNCH_S = 2e-6  # ASSUMED: from dispatch to the first wave, and the end of the kernel

# ---- atomics and handovers between workgroups
# MEASURED: 67,108,864 atomic additions to 4,096 bins, of which one gets 12.5 %, take 86.4 ms: 0.78
# G a second; with one addition a wave and bin they take 73.2 ms [HIST]. So neither the fullest bin
# nor repeated addresses of a wave decide. A request is a 64-byte piece of an instruction, plus one
# for each lane that comes to an address after another one: 0.91 a lane in that program. Fewer
# lines are not assumed to be slower.
ATOMIC_LINES = 128  # cache lines that those bins fill
ATOMIC_REQUESTS_PER_S = 0.71e9  # to that many lines or fewer; ASSUMED to grow with more
# A flag goes to another chiplet and back in 1.44 to 1.6 us (SEEN: fleet-mi300x@093e8ce6).
HANDOVER_S = 0.72e-6

# ---- cycles of a compute unit
VECTOR_CYCLES = 4  # MEASURED: 4.03 [CU]
LONG_ENCODING_GAP = 5  # MEASURED: cycles between 8-byte instructions of one wave, v_fma_f32 [CU]
PACKED_GAP = 8  # MEASURED: cycles between packed instructions of one wave; 4 for two waves [CU]
# SEEN: transcendental functions take 4 issue groups in LLVM's model (SISchedule.td). Integer
# products, 64-bit shifts and conversions take one: WriteIntMul, Write64Bit and WriteDoubleCvt are 1
# in SIDPFullSpeedModel (gfx90a), SIDPGFX942FullSpeedModel and SIDPGFX950FullSpeedModel.
SLOW_VECTOR_CYCLES = 16
PERMUTE_CYCLES = 2  # ASSUMED: permutes pass 32 lanes a cycle through the LDS crossbar
UNSAMPLED_LDS_CYCLES = 64  # ASSUMED: an LDS access that no sample ran, all lanes in conflict
LDS_LATENCY = 64  # ASSUMED
SCALAR_LATENCY = 200  # ASSUMED
STORE_LATENCY = 100  # ASSUMED: until a store no longer counts as outstanding
WORKGROUP_LAUNCH = 200  # ASSUMED: between workgroups that start on one compute unit
# DERIVED: lines that one compute unit waits for, by Little's law. The L2 delivers 31 to 44 bytes a
# cycle to a compute unit (two programs of RRZE) at a latency of 208 cycles [LAT]: 50 to 72 lines.
# At 455 cycles 64 lines give 11.5 TB/s for all units; [C&C] measures 11.9 from the Infinity Cache.
MISS_LINES = 64
L2_BYTES_PER_CYCLE = 64  # RECALLED: L1 fill of one compute unit
MATRIX_MINIMUM_CYCLES = 8  # RECALLED: the shortest matrix instruction


@dataclass(frozen=True)
class Latencies:
    """Cycles from a load to its value on an idle device, by where it hits."""

    l1: float
    l2: float
    mall: float
    hbm: float


# MEASURED by pointer chases [LAT]. MI300X: 113 to 126; 197 to 225 up to 3 MB; 445 to 465 for 6 to
# 100 MB; 862 to 884 above 400 MB, misses of the TLB included.
_MI300X_LATENCIES = Latencies(117, 208, 455, 870)
# The same on an MI210, which is one die of an MI250X: 128 up to 16 KB, 250 up to 4 MB, 587 to 604
# for 17 to 80 MB. It has no Infinity Cache.
_MI210_LATENCIES = Latencies(128, 250, 592, 592)


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
        latencies: Of loads.
        l1_sets: Sets of a compute unit's L1, of 4 lines each.
        wide_read_banks: Banks of the LDS that reads of 8 and 16 bytes see.
        miss_lines: Lines that a compute unit waits for at a time.
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
    latencies: Latencies
    l1_sets: int
    wide_read_banks: int = LDS_BANKS
    miss_lines: int = MISS_LINES

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
        _MI210_LATENCIES,
        32,
    ),
    # SEEN, except the clock, the rate of the Infinity Cache [WP] and the L2 channels (RECALLED).
    # 1,307 TFLOP/s for f16, 2,614 for fp8 and i8, 653 for xf32, 163 for f32 and f64.
    "gfx942": Figures(
        *(304, 8, 64 << 10, 2.1e9, 5.3e12, 17.2e12, 256 << 20, 4 << 20, 16),
        (2048, 2048, 4096, 4096, 4096, 4096, 4096, 256, 1024, 256),
        _MI300X_LATENCIES,
        64,
    ),
    # RECALLED: AMD's CDNA4 white paper and data sheet; the rate of the Infinity Cache ASSUMED as of
    # the MI300X. 2,500 TFLOP/s for 16 bits, 5,000 for fp8 and i8, 157 for f32, 79 for f64. The
    # higher rate of the 6- and 4-bit floats is not modelled.
    "gfx950": Figures(
        *(256, 8, 160 << 10, 2.4e9, 8.0e12, 17.2e12, 256 << 20, 4 << 20, 16),
        (4096, 4096, 8192, 8192, 8192, 8192, 8192, 256, 0, 128),
        _MI300X_LATENCIES,  # ASSUMED
        64,
        64,  # MEASURED: banks on an MI355X (HipKittens@f09e9685, analysis of LDS phases)
        # MEASURED: rates at which a unit of an MI355X reads HBM with 1 to 64 KB of loads in flight
        # [XCD]. Of 160 to 216 lines 180 meet 12 rates best (9 % at the mean). By Little's law
        # alone, 62.4 GB/s from HBM are 177 lines at 870 cycles, and 112 GB/s from the Infinity
        # Cache 166 at 455.
        180,
    ),
}
MI300X = FIGURES["gfx942"]
