// fault: lds_race at 10+11
// launch: 1 | 128 | f32(128), zeros(128)
// a scan step writes what others have yet to read
kernel void scan(const float* x, float* out) {
  __shared__ float sums[128];
  sums[tid] = x[tid];
  barrier();
#pragma nounroll
  for (int step = 1; step < 128; step *= 2) {
    float other = tid >= step ? sums[tid - step] : 0.f;
    sums[tid] += other;
    barrier();
  }
  out[tid] = sums[tid];
}
