// fault: lds_race at 8+10
// launch: 1 | 128 | f32(8), zeros(128 * 8)
// the next value is broadcast before all have read the last one
kernel void spread(const float* x, float* out) {
  __shared__ float value;
#pragma nounroll
  for (int i = 0; i < 8; i++) {
    if (tid == 0) value = x[i];
    barrier();
    out[128 * i + tid] = value;
  }
}
