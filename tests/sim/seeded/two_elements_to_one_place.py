# fault: lost_write at 11
# launch: 1 | 1 | f32(64), zeros(64) | BLOCK=64
# two elements are stored to each address
import triton
import triton.language as tl


@triton.jit
def squeeze(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at // 2, tl.load(x + at))
