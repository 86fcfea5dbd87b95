// fault: out_of_bounds_read at 7
// launch: 4 | 64 | f32(4 * 100), zeros(4 * 64), 100
// threads beyond the row are not turned off
kernel void partial_sums(const float* x, float* out, int columns) {
  float sum = 0.f;
  for (int c = tid; c < 128; c += threads)
    sum += x[bid * columns + c];
  out[bid * 64 + tid] = sum;
}
