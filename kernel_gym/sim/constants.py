"""Figures of the AMD Instinct MI300X that the model uses, each with where it comes from.

SEEN: read in a public source: [C&C] Chips and Cheese, "Testing AMD's Giant MI300X" (2024), and the
hardware table of the ROCm documentation. RECALLED: from [WP] AMD's CDNA3 white paper (2023), [ISA]
AMD's CDNA3 instruction set manual or the data sheet, from memory. DERIVED: computed from published
peaks. FITTED: chosen to meet a published figure, which is then no part of the validation. ASSUMED:
our estimate, uncertain, to be calibrated against measurements. Absolute times are therefore
indications; ratios and ranks are the use. docs/timing-model.md says how each enters.
"""

from __future__ import annotations

ARCHITECTURE = "gfx942"

# ---- layout
COMPUTE_UNITS = 304  # SEEN: 8 chiplets of 38
CHIPLETS = 8  # SEEN
SIMDS = 4  # RECALLED: a compute unit
MAX_WAVES_PER_SIMD = 8  # RECALLED
VECTOR_REGISTERS = 512  # RECALLED: a lane and SIMD, vector and accumulation together
VECTOR_GRANULE = 8  # RECALLED
SCALAR_REGISTERS = 800  # RECALLED: a SIMD; no practical limit with 8 waves of 100
LDS_BYTES = 65536  # SEEN: a compute unit
LDS_GRANULE = 512  # RECALLED
MAX_WORKGROUPS_PER_CU = 32  # RECALLED: barrier resources
WAVE_LANES = 64  # SEEN
LINE_BYTES = 128  # RECALLED: cache line of L1, L2 and Infinity Cache

# ---- rates
CLOCK_HZ = 2.1e9  # RECALLED [WP]: peak engine clock
HBM_BYTES_PER_S = 5.3e12  # SEEN
HBM_EFFICIENCY = 0.80  # ASSUMED
MALL_BYTES_PER_S = 17.2e12  # RECALLED [WP]: Infinity Cache, peak
MALL_EFFICIENCY = 0.70  # RECALLED: 11.9 TB/s measured by [C&C]
# FITTED: what the power limit leaves of the matrix peak in a long run: 654 (fp16) and 708 (bf16) of
# 1,307 TFLOP/s in AMD's "Measuring max-achievable FLOPs" (ROCm blog, 2025; recalled).
MATRIX_SUSTAINED = 0.53
L2_BYTES_PER_S = CHIPLETS * 16 * 128 * CLOCK_HZ  # RECALLED: 16 channels of 128 B a clock each
L2_EFFICIENCY = 0.70  # ASSUMED
CU_BYTES_PER_CLOCK = 50  # ASSUMED: what one compute unit can pull from beyond its L1

# ---- capacities
MALL_BYTES = 256 << 20  # SEEN
L2_BYTES = 4 << 20  # SEEN: a chiplet

# ---- fixed costs
EXPOSED_SHARE = 0.1  # ASSUMED: part of the shorter terms that the longest one does not hide
LAUNCH_S = 2e-6  # ASSUMED: from dispatch to the first wave, and the end of the kernel

# ---- cycles of a compute unit
VECTOR_CYCLES = 4  # RECALLED: 64 lanes on 16
SLOW_VECTOR_CYCLES = 16  # RECALLED: transcendental functions, 32-bit integer multiplication
WIDE_VECTOR_CYCLES = 8  # ASSUMED: 64-bit operations other than fused multiply-add
PERMUTE_CYCLES = 2  # ASSUMED: permutes pass 32 lanes a cycle through the LDS crossbar
UNSAMPLED_LDS_CYCLES = 16  # ASSUMED: an LDS access whose banks nobody looked at
LDS_LATENCY = 64  # ASSUMED
L1_LATENCY = 120  # ASSUMED
L2_LATENCY = 300  # ASSUMED
MALL_LATENCY = 650  # ASSUMED
HBM_LATENCY = 900  # ASSUMED
SCALAR_LATENCY = 200  # ASSUMED
STORE_LATENCY = 100  # ASSUMED: until a store no longer counts as outstanding
WORKGROUP_LAUNCH = 200  # ASSUMED: between workgroups that start on one compute unit
L2_BYTES_PER_CYCLE = 64  # RECALLED: L1 fill of one compute unit

# Matrix operations a cycle and compute unit, DERIVED from the published peaks (1,307 TFLOP/s for
# f16, 2,614 for fp8 and i8, 653 for xf32, 163 for f32 and f64) at 304 units and 2.1 GHz.
# By type number of kernel_gym.sim.matrix_ops.
MATRIX_OPERATIONS = {
    0: 2048,
    1: 2048,
    2: 4096,
    3: 4096,
    4: 4096,
    5: 4096,
    6: 4096,
    7: 256,
    8: 1024,
    9: 256,
}
MATRIX_MINIMUM_CYCLES = 8  # RECALLED: the shortest matrix instruction
