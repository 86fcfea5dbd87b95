// Permutation by expert: a kernel writes zeros, another copies one choice a block.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void zero_kernel(__half* out, int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at < count) out[at] = __float2half(0.0f);
}

__global__ void copy_kernel(const __half* x, const int32_t* place, __half* out, int64_t top_k,
                            int64_t hidden) {
  const int64_t row = place[blockIdx.x];
  if (row < 0) return;
  const __half* source = x + blockIdx.x / top_k * hidden;
  for (int64_t c = threadIdx.x; c < hidden; c += kThreads) out[row * hidden + c] = source[c];
}

extern "C" int moe_permute(const __half* x, const int32_t* place, int64_t rows, __half* out,
                           int64_t tokens, int64_t top_k, int64_t hidden, hipStream_t stream) {
  const int64_t count = rows * hidden;
  zero_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(out, count);
  copy_kernel<<<dim3(tokens * top_k), dim3(kThreads), 0, stream>>>(x, place, out, top_k, hidden);
  return hipGetLastError();
}
