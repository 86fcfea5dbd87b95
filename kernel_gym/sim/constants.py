"""Figures of the AMD Instinct MI300X that the model uses, each with where it comes from.

SEEN: read in a public source while writing (Chips and Cheese, "Testing AMD's Giant MI300X"; the
hardware table of the ROCm documentation). RECALLED: from AMD's CDNA3 white paper and data sheet,
from memory. DERIVED: computed from published peaks. ASSUMED: our estimate, to be calibrated
against measurements. Absolute times are therefore indications; ratios and ranks are the use.
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
CLOCK_HZ = 2.1e9  # RECALLED: peak engine clock
HBM_BYTES_PER_S = 5.3e12  # SEEN
HBM_EFFICIENCY = 0.80  # ASSUMED
MALL_BYTES_PER_S = 17.2e12  # RECALLED: Infinity Cache
L2_BYTES_PER_S = CHIPLETS * 16 * 128 * CLOCK_HZ  # RECALLED: 16 channels of 128 B a clock each
L2_EFFICIENCY = 0.70  # ASSUMED
CU_BYTES_PER_CLOCK = 50  # ASSUMED: what one compute unit can pull from beyond its L1

# ---- capacities
MALL_BYTES = 256 << 20  # SEEN
L2_BYTES = 4 << 20  # SEEN: a chiplet

# ---- fixed costs
LAUNCH_S = 2e-6  # ASSUMED: from dispatch to the first wave, and the end of the kernel
