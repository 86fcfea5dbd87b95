// RoPE backward: one pair of elements a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void rope_backward_kernel(const __half* g, const float* cos, const float* sin,
                                     const int64_t* position, __half* d, int64_t pairs,
                                     int64_t heads, int64_t half) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= pairs) return;
  const int64_t row = at / half, i = at % half;
  const int64_t angle = position[row / heads] * half + i;
  const int64_t low_at = row * 2 * half + i;
  const float low = __half2float(g[low_at]), high = __half2float(g[low_at + half]);
  d[low_at] = __float2half(low * cos[angle] + high * sin[angle]);
  d[low_at + half] = __float2half(high * cos[angle] - low * sin[angle]);
}

static void rotate_back(const __half* g, const float* cos, const float* sin,
                        const int64_t* position, __half* d, int64_t tokens, int64_t heads,
                        int64_t half, hipStream_t stream) {
  const int64_t pairs = tokens * heads * half;
  rope_backward_kernel<<<dim3((pairs + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      g, cos, sin, position, d, pairs, heads, half);
}

extern "C" int rope_backward(const __half* gq, const __half* gk, const float* cos, const float*
                             sin, const int64_t* position, __half* dq, __half* dk, int64_t tokens, int64_t heads, int64_t
                             kv_heads, int64_t head_dim, int64_t context, hipStream_t stream) {
  rotate_back(gq, cos, sin, position, dq, tokens, heads, head_dim / 2, stream);
  rotate_back(gk, cos, sin, position, dk, tokens, kv_heads, head_dim / 2, stream);
  return hipGetLastError();
}
