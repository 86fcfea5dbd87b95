// Cross entropy backward: one block of 256 threads a row, three passes over the row.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

template <bool kMax>
__device__ float block_reduce(float value, float* scratch) {
  const int lane = threadIdx.x;
  __syncthreads();
  scratch[lane] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half) {
      const float other = scratch[lane + half];
      scratch[lane] = kMax ? fmaxf(scratch[lane], other) : scratch[lane] + other;
    }
    __syncthreads();
  }
  return scratch[0];
}

__global__ void gradient_kernel(const __half* logits, const int64_t* target, const float* grad,
                                float smoothing, int64_t ignore_index, __half* dlogits,
                                int64_t vocab) {
  __shared__ float scratch[kThreads];
  const __half* x = logits + (int64_t)blockIdx.x * vocab;
  __half* out = dlogits + (int64_t)blockIdx.x * vocab;
  const int64_t mine = target[blockIdx.x];
  if (mine == ignore_index) {
    for (int64_t c = threadIdx.x; c < vocab; c += kThreads) out[c] = __float2half(0.0f);
    return;
  }
  float top = -INFINITY;
  for (int64_t c = threadIdx.x; c < vocab; c += kThreads) top = fmaxf(top, __half2float(x[c]));
  const float row_max = block_reduce<true>(top, scratch);
  float total = 0.0f;
  for (int64_t c = threadIdx.x; c < vocab; c += kThreads) {
    total += expf(__half2float(x[c]) - row_max);
  }
  const float row_sum = block_reduce<false>(total, scratch);
  const float scale = grad[blockIdx.x];
  for (int64_t c = threadIdx.x; c < vocab; c += kThreads) {
    const float goal = smoothing / vocab + (c == mine ? 1.0f - smoothing : 0.0f);
    out[c] = __float2half(scale * (expf(__half2float(x[c]) - row_max) / row_sum - goal));
  }
}

extern "C" int cross_entropy_backward(const __half* logits, const int64_t* target, const float*
                                      grad, float smoothing, int64_t ignore_index, __half* dlogits, int64_t rows, int64_t vocab,
                                      hipStream_t stream) {
  gradient_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(logits, target, grad, smoothing,
                                                             ignore_index, dlogits, vocab);
  return hipGetLastError();
}
