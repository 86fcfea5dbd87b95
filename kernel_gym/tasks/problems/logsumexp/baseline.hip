// Log-sum-exp: one block of 256 threads a row; trees in shared memory for maximum and sum.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

template <bool kMax>
__device__ float block_reduce(float value, float* scratch) {
  __syncthreads();
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const float mine = scratch[threadIdx.x];
      const float other = scratch[threadIdx.x + half];
      scratch[threadIdx.x] = kMax ? fmaxf(mine, other) : mine + other;
    }
    __syncthreads();
  }
  return scratch[0];
}

__global__ void logsumexp_kernel(const __half* x, __half* out, int64_t cols) {
  __shared__ float scratch[kThreads];
  const __half* row = x + (int64_t)blockIdx.x * cols;

  float top = -INFINITY;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) top = fmaxf(top, __half2float(row[c]));
  const float row_max = block_reduce<true>(top, scratch);

  float total = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    total += expf(__half2float(row[c]) - row_max);
  }
  const float row_sum = block_reduce<false>(total, scratch);
  if (threadIdx.x == 0) out[blockIdx.x] = __float2half(row_max + logf(row_sum));
}

extern "C" int logsumexp(const __half* x, __half* out, int64_t rows, int64_t cols,
                         hipStream_t stream) {
  logsumexp_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(x, out, cols);
  return hipGetLastError();
}
