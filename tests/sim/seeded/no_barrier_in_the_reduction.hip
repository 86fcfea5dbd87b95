// fault: lds_race at 11
// launch: 2 | 256 | f32(512), zeros(2)
// the steps of a tree reduction are not separated
kernel void sums(const float* x, float* out) {
  __shared__ float part[256];
  part[tid] = x[bid * 256 + tid];
  barrier();
#pragma nounroll
  for (int half = 128; half > 0; half /= 2) {
    if (tid < half)
      part[tid] += part[tid + half];
  }
  if (tid == 0) out[bid] = part[0];
}
