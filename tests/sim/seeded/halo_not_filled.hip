// fault: uninitialised_lds at 8
// launch: 1 | 64 | f32(64), zeros(64)
// the border of a stencil is not loaded
kernel void stencil(const float* x, float* out) {
  __shared__ float tile[66];
  tile[tid + 1] = x[tid];
  barrier();
  out[tid] = tile[tid] + tile[tid + 2];
}
