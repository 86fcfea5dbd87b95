// fault: global_race at 6+9
// launch: 2 | 64 | f32(64), zeros(64), ints(1), zeros(64)
// the second workgroup reads without waiting for the first
kernel void pipeline(const float* x, float* middle, int* flag, float* out) {
  if (bid == 0) {
    middle[tid] = x[tid] * 2.f;
    if (tid == 0) add(flag, 1);
  } else {
    out[tid] = middle[63 - tid];
  }
}
