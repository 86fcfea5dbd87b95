// fault: out_of_bounds_write at 6
// launch: 8 | 32 | f32(8 * 32), zeros(8 * 32), 32
// the output is indexed by the stride of the input
kernel void transpose(const float* x, float* out, int columns) {
  const float value = x[bid * columns + tid];
  out[tid * columns + bid] = value;
}
