// Rotary embedding by sections: one pair a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void mrope_kernel(const __half* x, const float* cos, const float* sin, int64_t temporal,
                             int64_t spatial, __half* out, int64_t tokens, int64_t heads,
                             int64_t half) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= tokens * heads * half) return;
  const int64_t pair = at % half, row = at / half, token = row / heads;
  const int64_t axis = pair < temporal ? 0 : pair < temporal + spatial ? 1 : 2;
  const int64_t angle = (axis * tokens + token) * half + pair;
  const float c = cos[angle], s = sin[angle];
  const float low = __half2float(x[row * 2 * half + pair]);
  const float high = __half2float(x[row * 2 * half + half + pair]);
  out[row * 2 * half + pair] = __float2half(low * c - high * s);
  out[row * 2 * half + half + pair] = __float2half(high * c + low * s);
}

extern "C" int mrope(const __half* x, const float* cos, const float* sin, int64_t temporal,
                     int64_t spatial, __half* out, int64_t tokens, int64_t heads, int64_t head_dim,
                     hipStream_t stream) {
  const int64_t count = tokens * heads * (head_dim / 2);
  mrope_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      x, cos, sin, temporal, spatial, out, tokens, heads, head_dim / 2);
  return hipGetLastError();
}
