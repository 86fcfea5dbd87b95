// fault: global_race at 5+7
// launch: 1 | 128 | f32(128), zeros(128), zeros(128)
// waves exchange values through memory without a barrier
kernel void exchange(const float* x, float* scratch, float* out) {
  scratch[tid] = x[tid];
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "wavefront");
  out[tid] = scratch[(tid + 64) % 128];
}
