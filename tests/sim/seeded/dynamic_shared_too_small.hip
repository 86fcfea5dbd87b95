// fault: lds_out_of_bounds at 6
// launch: 1 | 64 | f32(64), zeros(64) | dynamic_lds=128
// half of the dynamic shared memory was asked for
extern __shared__ float tile[];
kernel void reverse(const float* x, float* out) {
  tile[tid] = x[tid];
  barrier();
  out[tid] = tile[63 - tid];
}
