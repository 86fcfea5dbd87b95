"""The numbers of the evaluation protocol. A change needs a page in docs/decisions."""

from kernel_gym.records import RATIO_CLAMP as RATIO_CLAMP

PROTOCOL_VERSION = "1"

MAX_LEG = 4.0
"""Largest error of a row over the yardstick's (rule 7)."""
RMS_LEG = 2.5
"""Root-mean-square error of a row over the yardstick's (rule 7)."""
TAIL_ROWS = 1e-3
"""Share of the rows that may reach MAX_LEG by their root mean square: the more rows, the longer the
tail. Honest fp16 attention beside an fp32 reference has a ratio of 2.2 in one row of 1000, and more
where values cancel."""
SINGLE_ROUNDINGS = 8
"""fp32 results are sums of fp32 terms: their order alone moves them by several roundings, which the
reference's own order may happen to avoid. Honest kernels needed up to 2.1 of these."""
CANCELLED_LEG = 3.0
"""Most by which a row's relative error may exceed the usual one when its values cancel."""
UNIFORM_ROUNDING_RMS = 0.29
"""RMS of a rounding error that is uniform in one unit: 1/sqrt(12)."""
ROW_BLOCK = 4096
"""Most outputs that share one tolerance."""

PHYSICS_MARGIN = 0.95
"""Below this share of the data sheet's roofline a time is impossible (rule 20)."""
NOOP_SHARE = 0.5
"""Most of the non-zero answer that may be right when no kernel ran (rule 10)."""
TIME_AGREEMENT = 1.25
"""Two calls on the same data may differ by this factor; beyond it no time can be trusted."""
INFRA_RETRIES = 2
"""Failures of ours are retried so often before the outcome is `infra` (rule 27)."""
DEVICE_RETRIES = 1
"""A lost device is tried so often again, since a neighbour may have lost it on a GPU. A simulated
GPU has no neighbours: lost in a request of the candidate, it is the candidate's failure at once."""
RETRY_SECONDS = 120.0
"""Nothing is tried again later than this after the beginning of the first try."""

MAX_SOURCE_BYTES = 256 * 1024

# Time on a GPU (rules 11-21). Calibrated on an H100 and an H200: docs/decisions, 0001 to 0006.
RING = 12
"""Input sets at addresses of their own; no timed block uses one twice (rule 11)."""
RING_LEAST, RING_BYTES = 4, 1 << 30
"""Sets that there are in any case; beyond them the ring stops growing at this size."""
RING_SHORT = 48
"""The same for small sets, whose calls are short ..."""
SMALL_SET = 8 << 20
"""... which are those of fewer bytes."""
PILOT_CALLS = 3
PILOT_LEAD, MAX_LEAD = 8, 60
"""Flushes before a block, while which the host gets ahead of the GPU ..."""
LEAD_HOSTS = 1.5
"""... and how many times as long as the host takes for a call they are."""
BLOCK_SECONDS = 2e-3
"""A block is this long (rule 15: 20 ms; a tenth of it gives the same interval in less time) ..."""
CLAIM_SECONDS, MOST_LONGER = 1e-3, 2
"""The candidate's part of a block is this long at least, unless its blocks would be so many times
as long: what is free of the judge's clock (FREE_WALL) is a small share then."""
BLOCK_CALLS = (2, 50)
"""... within these numbers of calls, and never more than there are input sets."""
LONG_CALL = 20e-3
"""A longer call, in seconds, is a block by itself: references that walk along a sequence in Python
took up to 0.9 s on an H200."""
MIN_PAIRS = 6
MAX_PAIRS = 60
MAX_SECONDS = 5.0
HALF_WIDTH = 0.01
HALF_WIDTH_SHARE = 0.02
"""The same as a share of the effect, where that is more: 2.8 % at four times the baseline."""
TRIMMED = 0.2
"""Share of the pairs' effects that is cut off on each side before the mean (rule 14)."""
CONFIDENCE = 0.95
GRAPH_BELOW = 100e-6
"""Shorter calls, by the geometric mean of both sides, are timed by graph replay (rule 16), which
has no host in its time and flushes once a round over the ring."""
MOST_REPLAYS = 16
"""Replays in a block, each once over all input sets: by the block's length, and drawn anew for each
block, up to twice the least."""
VERIFY_SHARE = 0.25
"""Of the candidate's blocks that count whose outputs are verified, and one at least (rule 17)."""
WALL_QUANTILE = 0.25
"""Of the blocks' unaccounted time: a late answer of the system adds to single blocks only."""
WALL_SHARE = 0.25
"""Share of its claimed time that may be unaccounted for, in the median workload (rule 13)."""
WALL_LIMIT = (1e-3, 0.5)
"""Seconds and share that may be unaccounted for in a block of any workload."""
FREE_WALL = (250e-6, 0.05)
"""Seconds, and share of a block's claimed time, by which its stamps may be better than the judge's
clock says; never more than WALL_SHARE of it. What is beyond is not paid."""
CHARGE_LIMIT = 0.02
"""A comparison whose effect is beyond that by more is made again."""
TRIES = 3
"""Comparisons of a workload, and of all of them, of which one must agree with the judge's clock."""
PATIENCE = 3
"""Blocks of all but the first are so many times as long: what the host takes for a block, which is
another figure for each process and processor, is a smaller share of them."""
NOISE_LIMIT = 0.03
"""A GPU on which a kernel differs from itself by more is not scored (rule 18)."""
NOISE_EVERY = 50
"""Evaluations between two measurements of that."""
AUDIT_ABOVE = 10.0
"""Speedups that a person should look at (rule 20)."""
