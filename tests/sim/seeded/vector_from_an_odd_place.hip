// fault: misaligned at 8
// launch: 1 | 32 | f32(160), zeros(128)
// four floats are read from one float on
kernel void window(const float* x, float4_* out) {
  __shared__ float4_ tile[40];
  for (int i = tid; i < 160; i += 32) ((float*)tile)[i] = x[i];
  barrier();
  out[tid] = *(const float4_*)((const float*)tile + 4 * tid + 1);
}
