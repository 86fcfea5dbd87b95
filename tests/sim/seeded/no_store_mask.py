# fault: out_of_bounds_write at 12
# launch: 3 | 4 | f32(768), zeros(700), 700 | BLOCK=256
# the store has no mask
import triton
import triton.language as tl


@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, value * 2)
