// Wrong: rotates neighbours (2 i, 2 i + 1) instead of the halves (i, i + head_dim / 2).
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void rope_kernel(const __half* x, const float* cos, const float* sin, __half* out,
                            int heads, int half_dim) {
  const int64_t token = blockIdx.x;
  const int pair = blockIdx.y * kThreads + threadIdx.x;
  if (pair >= heads * half_dim) return;
  const int head = pair / half_dim;
  const int i = pair - head * half_dim;
  const float c = cos[token * half_dim + i];
  const float s = sin[token * half_dim + i];
  const int64_t at = (token * heads + head) * 2 * half_dim + 2 * i;
  const float a = __half2float(x[at]);
  const float b = __half2float(x[at + 1]);
  out[at] = __float2half(a * c - b * s);
  out[at + 1] = __float2half(b * c + a * s);
}

extern "C" int rope(const __half* x, const float* cos, const float* sin, __half* out,
                    int64_t tokens, int64_t heads, int64_t head_dim, hipStream_t stream) {
  const int64_t pairs = heads * head_dim / 2;
  const dim3 grid(tokens, (pairs + kThreads - 1) / kThreads);
  rope_kernel<<<grid, dim3(kThreads), 0, stream>>>(x, cos, sin, out, (int)heads,
                                                   (int)(head_dim / 2));
  return hipGetLastError();
}
