// fault: uninitialised_lds at 10
// launch: 1 | 128 | f32(100), zeros(1), 100
// the reduction also adds elements that nobody has filled
kernel void sum(const float* x, float* out, int n) {
  __shared__ float part[128];
  if (tid < n) part[tid] = x[tid];
  barrier();
#pragma nounroll
  for (int half = 64; half > 0; half /= 2) {
    if (tid < half) part[tid] += part[tid + half];
    barrier();
  }
  if (tid == 0) out[0] = part[0];
}
