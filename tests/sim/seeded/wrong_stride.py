# fault: out_of_bounds_read at 12
# launch: 8 | 2 | f32(8 * 100), zeros(8), 100, 128 | BLOCK=128
# the row stride of another tensor
import triton
import triton.language as tl


@triton.jit
def row_sum(x, out, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + at, mask=at < columns, other=0.0)
    tl.store(out + row, tl.sum(value, axis=0))
