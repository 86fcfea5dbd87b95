// fault: out_of_bounds_write at 7
// launch: 4 | 64 | f32(256), zeros(200)
// the grid is rounded up, and the last workgroup does not look at n
kernel void copy(const float* x, float* out) {
  const int i = bid * threads + tid;
  const float value = x[i];
  out[i] = value + 1.f;
}
