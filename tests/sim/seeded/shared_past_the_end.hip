// fault: lds_out_of_bounds at 6
// launch: 1 | 64 | f32(64), zeros(64)
// a shared array without room for the neighbour
kernel void neighbour(const float* x, float* out) {
  __shared__ float tile[64];
  tile[tid + 1] = x[tid];
  barrier();
  out[tid] = tile[tid];
}
