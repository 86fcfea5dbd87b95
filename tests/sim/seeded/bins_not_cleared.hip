// fault: uninitialised_lds at 6+8
// launch: 1 | 64 | i32(64, 64), ints(64)
// the bins of a histogram are never cleared
kernel void histogram(const int* x, int* out) {
  __shared__ int bins[64];
  add_local(&bins[x[tid]], 1);
  barrier();
  out[tid] = bins[tid];
}
