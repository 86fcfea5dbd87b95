// fault: out_of_bounds_read at 8
// launch: 1 | 64 | f32(64 * 33), zeros(64), 33
// the loop over a row runs to <= instead of <
kernel void row_sums(const float* x, float* out, int columns) {
  float sum = 0.f;
#pragma nounroll
  for (int c = 0; c <= columns; c++)
    sum += x[tid * columns + c];
  out[tid] = sum;
}
