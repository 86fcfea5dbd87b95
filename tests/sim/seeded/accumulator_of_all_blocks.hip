// fault: global_race at 6
// launch: 4 | 64 | f32(4), zeros(1)
// workgroups add to one number without an atomic
kernel void total(const float* x, float* out) {
  if (tid == 0)
    out[0] += x[bid];
}
