// fault: lds_race at 7
// launch: 1 | 128 | i32(128, 64), ints(64)
// counting begins before the bins are cleared
kernel void histogram(const int* x, int* out) {
  __shared__ int bins[64];
  if (tid < 64) bins[tid] = 0;
  add_local(&bins[x[tid]], 1);
  barrier();
  if (tid < 64) out[tid] = bins[tid];
}
