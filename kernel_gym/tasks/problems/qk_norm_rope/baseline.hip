// Norm and rotation by head: one block of 128 threads a head of one token, a thread a pair, a tree
// of sums in shared memory; one launch for q and one for k.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kThreads = 128;

__global__ void norm_rope_kernel(const __half* x, const __half* weight, const float* cos,
                                 const float* sin, float eps, __half* out, int64_t head_dim) {
  __shared__ float sums[kThreads];
  const int lane = threadIdx.x;
  const int64_t token = blockIdx.x, heads = gridDim.y;
  const int64_t base = (token * heads + blockIdx.y) * head_dim;
  const int64_t half_dim = head_dim / 2;
  const bool mine = lane < half_dim;
  const float a = mine ? __half2float(x[base + lane]) : 0.0f;
  const float b = mine ? __half2float(x[base + half_dim + lane]) : 0.0f;
  sums[lane] = a * a + b * b;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half) sums[lane] += sums[lane + half];
    __syncthreads();
  }
  if (!mine) return;
  const float norm = 1.0f / sqrtf(sums[0] / (float)head_dim + eps);
  const float left = a * norm * __half2float(weight[lane]);
  const float right = b * norm * __half2float(weight[half_dim + lane]);
  const float c = cos[token * half_dim + lane], s = sin[token * half_dim + lane];
  out[base + lane] = __float2half(left * c - right * s);
  out[base + half_dim + lane] = __float2half(right * c + left * s);
}

extern "C" int qk_norm_rope(const __half* q, const __half* k, const __half* q_weight,
                            const __half* k_weight, const float* cos, const float* sin, float eps,
                            __half* q_out, __half* k_out, int64_t tokens, int64_t q_heads,
                            int64_t k_heads, int64_t head_dim, hipStream_t stream) {
  norm_rope_kernel<<<dim3(tokens, q_heads), dim3(kThreads), 0, stream>>>(q, q_weight, cos, sin, eps,
                                                                         q_out, head_dim);
  norm_rope_kernel<<<dim3(tokens, k_heads), dim3(kThreads), 0, stream>>>(k, k_weight, cos, sin, eps,
                                                                         k_out, head_dim);
  return hipGetLastError();
}
