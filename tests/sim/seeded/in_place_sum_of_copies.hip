// fault: global_race at 8+10+12
// launch: 1 | 128 | f32(64), zeros(1)
// the second wave's copies are summed while the first wave overwrites the originals
kernel void scale_in_place(float* x, float* out) {
  int i = tid % 64;
  float v = 0;
  for (int step = 0; step < 2; step++) {
    v += x[i];
    if (tid < 64) {
      x[i] = v;
    } else if (v > 1000) {
      out[0] = x[i];
    }
  }
  if (tid >= 64) __hip_atomic_fetch_add(out, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
