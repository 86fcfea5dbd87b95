// fault: lds_race at 8+9
// launch: 1 | 128 | i32(128, 64), ints(64)
// the bins are read while others still count
kernel void histogram(const int* x, int* out) {
  __shared__ int bins[64];
  if (tid < 64) bins[tid] = 0;
  barrier();
  add_local(&bins[x[tid]], 1);
  if (tid < 64) out[tid] = bins[tid];
}
