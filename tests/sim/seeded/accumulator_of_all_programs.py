# fault: global_race at 12+13
# launch: 4 | 1 | f32(256), zeros(1) | BLOCK=64
# programs add to one number without an atomic
import triton
import triton.language as tl


@triton.jit
def total(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + at), axis=0)
    old = tl.load(out)
    tl.store(out, old + part)
