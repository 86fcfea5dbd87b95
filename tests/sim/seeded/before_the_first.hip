// fault: out_of_bounds_read at 7
// launch: 2 | 64 | f32(128), zeros(128), 128
// the left neighbour of the first element
kernel void difference(const float* x, float* out, int n) {
  const int i = bid * threads + tid;
  if (i < n)
    out[i] = x[i] - x[i - 1];
}
