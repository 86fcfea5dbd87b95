// fault: global_race at 6
// launch: 2 | 64 | f32(128), zeros(64)
// two workgroups store their halves of a sum to one place
kernel void halves(const float* x, float* out) {
  const float part = x[bid * 64 + tid] + 1.f;
  out[tid] = part;
}
