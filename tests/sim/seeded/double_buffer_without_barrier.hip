// fault: lds_race at 11+12
// launch: 1 | 128 | f32(128 * 8), zeros(128)
// the next tile is written while others read the same buffer
kernel void tiles(const float* x, float* out) {
  __shared__ float buffer[2][128];
  float sum = 0.f;
  buffer[0][tid] = x[tid];
  barrier();
#pragma nounroll
  for (int k = 0; k < 7; k++) {
    buffer[(k + 1) & 1][tid] = x[128 * (k + 1) + tid];
    sum += buffer[k & 1][127 - tid];
  }
  out[tid] = sum;
}
