// Rotary embedding in two dimensions: one block a token, each thread rotates pairs head by head.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void rope_2d_kernel(const __half* x, const int32_t* place, const float* pitch,
                               __half* out, int64_t heads, int64_t head_dim) {
  const int64_t token = blockIdx.x;
  const int64_t half_dim = head_dim / 2, quarter = head_dim / 4;
  const float row = (float)place[token * 2], column = (float)place[token * 2 + 1];
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t base = (token * heads + head) * head_dim;
    for (int64_t i = threadIdx.x; i < half_dim; i += kThreads) {
      const float angle = (i < quarter ? row : column) * pitch[i % quarter];
      const float c = cosf(angle), s = sinf(angle);
      const float a = __half2float(x[base + i]);
      const float b = __half2float(x[base + half_dim + i]);
      out[base + i] = __float2half(a * c - b * s);
      out[base + half_dim + i] = __float2half(b * c + a * s);
    }
  }
}

extern "C" int rope_2d(const __half* x, const int32_t* place, const float* pitch, __half* out,
                       int64_t tokens, int64_t heads, int64_t head_dim, hipStream_t stream) {
  rope_2d_kernel<<<dim3(tokens), dim3(kThreads), 0, stream>>>(x, place, pitch, out, heads,
                                                              head_dim);
  return hipGetLastError();
}
