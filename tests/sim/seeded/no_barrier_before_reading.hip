// fault: lds_race at 7
// launch: 2 | 256 | f32(512), zeros(512)
// a wave reads what another one has written, without a barrier
kernel void rotate(const float* x, float* out) {
  __shared__ float tile[256];
  tile[tid] = x[bid * 256 + tid];
  out[bid * 256 + tid] = tile[(tid + 64) % 256];
}
