# fault: out_of_bounds_read at 11+12
# launch: 1 | 2 | f32(128), zeros(128), 128 | BLOCK=128
# counts back from n instead of n - 1
import triton
import triton.language as tl


@triton.jit
def reverse(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + n - at)
    tl.store(out + at, value)
