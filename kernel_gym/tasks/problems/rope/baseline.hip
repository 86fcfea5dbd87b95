// Rotary embedding: one block a token; each thread rotates pairs of one head after another.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 128;

__global__ void rope_kernel(const __half* x, const float* cos, const float* sin, __half* out,
                            int64_t heads, int64_t head_dim) {
  const int64_t token = blockIdx.x;
  const int64_t half_dim = head_dim / 2;
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t base = (token * heads + head) * head_dim;
    for (int64_t i = threadIdx.x; i < half_dim; i += kThreads) {
      const float c = cos[token * half_dim + i];
      const float s = sin[token * half_dim + i];
      const float a = __half2float(x[base + i]);
      const float b = __half2float(x[base + half_dim + i]);
      out[base + i] = __float2half(a * c - b * s);
      out[base + half_dim + i] = __float2half(b * c + a * s);
    }
  }
}

extern "C" int rope(const __half* x, const float* cos, const float* sin, __half* out,
                    int64_t tokens, int64_t heads, int64_t head_dim, hipStream_t stream) {
  rope_kernel<<<dim3(tokens), dim3(kThreads), 0, stream>>>(x, cos, sin, out, heads, head_dim);
  return hipGetLastError();
}
