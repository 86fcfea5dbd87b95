# fault: out_of_bounds_write at 13
# launch: 4 | 2 | f32(4 * 64), zeros(3 * 64), 3, 64 | BLOCK=64
# rows are compared with the number of columns
import triton
import triton.language as tl


@triton.jit
def copy(x, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at)
    tl.store(out + row * columns + at, value, mask=row < columns)
