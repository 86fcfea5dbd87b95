# fault: out_of_bounds_read at 11
# launch: 3 | 4 | f32(700), zeros(3) | BLOCK=256
# the load has no mask
import triton
import triton.language as tl


@triton.jit
def sums(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(out + tl.program_id(0), tl.sum(value, axis=0))
