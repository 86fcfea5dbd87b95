# fault: global_race at 11+12
# launch: 4 | 1 | f32(257) | BLOCK=64
# each program reads what its neighbour overwrites
import triton
import triton.language as tl


@triton.jit
def shift(x, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at + 1)
    tl.store(x + at, value)
