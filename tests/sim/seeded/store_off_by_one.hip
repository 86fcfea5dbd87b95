// fault: out_of_bounds_write at 6
// launch: 4 | 64 | f32(256), zeros(256), 256
// each element goes one place too far
kernel void shift(const float* x, float* out, int n) {
  const int i = bid * threads + tid;
  if (i < n) out[i + 1] = x[i];
}
