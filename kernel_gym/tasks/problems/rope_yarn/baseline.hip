// Rotary embedding with its angles: one block of 128 threads a token, a thread a pair of one head
// after another.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kThreads = 128;

__global__ void rope_yarn_kernel(const __half* x, const int32_t* position, const float* frequency,
                                 float attention, __half* out, int64_t heads, int64_t half_dim) {
  const int64_t token = blockIdx.x;
  for (int64_t i = threadIdx.x; i < heads * half_dim; i += kThreads) {
    const float angle = (float)position[token] * frequency[i % half_dim];
    const float c = cosf(angle) * attention, s = sinf(angle) * attention;
    const int64_t at = (token * heads * half_dim + i) * 2;
    const float a = __half2float(x[at]), b = __half2float(x[at + 1]);
    out[at] = __float2half(a * c - b * s);
    out[at + 1] = __float2half(b * c + a * s);
  }
}

extern "C" int rope_yarn(const __half* x, const int32_t* position, const float* frequency,
                         float attention, __half* out, int64_t tokens, int64_t heads,
                         int64_t head_dim, hipStream_t stream) {
  rope_yarn_kernel<<<dim3(tokens), dim3(kThreads), 0, stream>>>(x, position, frequency, attention,
                                                                out, heads, head_dim / 2);
  return hipGetLastError();
}
