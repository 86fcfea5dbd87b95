"""The numbers of the evaluation protocol. Changed here and in the measurements, never silently."""

PROTOCOL_VERSION = "1"

MAX_LEG = 4.0
"""Largest error of a row over the yardstick's (rule 7)."""
RMS_LEG = 2.5
"""Root-mean-square error of a row over the yardstick's (rule 7)."""
UNIFORM_ROUNDING_RMS = 0.29
"""RMS of a rounding error that is uniform in one unit: 1/sqrt(12)."""
ROW_BLOCK = 4096
"""Most outputs that share one tolerance."""

RATIO_CLAMP = (0.1, 10.0)
"""Speedup of one workload, before the geometric mean (rule 24)."""
PHYSICS_MARGIN = 0.95
"""Below this share of the data sheet's roofline a time is impossible (rule 20)."""
TIME_AGREEMENT = 1.25
"""Two calls on the same data may differ by this factor; beyond it no time can be trusted."""
INFRA_RETRIES = 2
"""Failures of ours are retried so often before the outcome is `infra` (rule 27)."""

MAX_SOURCE_BYTES = 256 * 1024
