// fault: lost_write at 5
// launch: 2 | 64 | f32(128), zeros(2)
// a partial sum of each lane goes to one address
kernel void sums(const float* x, float* out) {
  out[bid] = x[bid * 64 + tid];
}
