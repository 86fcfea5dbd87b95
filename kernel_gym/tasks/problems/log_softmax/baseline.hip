// Log-softmax: one block of 256 threads a row. Each thread keeps a running maximum and a sum of
// exponentials below it; a tree in shared memory merges them.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void log_softmax_kernel(const __half* x, float* out, int64_t cols) {
  __shared__ float tops[kThreads];
  __shared__ float sums[kThreads];
  const int64_t base = (int64_t)blockIdx.x * cols;

  float top = -65504.0f;  // the lowest float16, so that the difference below is never NaN
  float sum = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float value = __half2float(x[base + c]);
    const float higher = fmaxf(top, value);
    sum = sum * expf(top - higher) + expf(value - higher);
    top = higher;
  }
  tops[threadIdx.x] = top;
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const float higher = fmaxf(tops[threadIdx.x], tops[threadIdx.x + half]);
      sums[threadIdx.x] = sums[threadIdx.x] * expf(tops[threadIdx.x] - higher) +
                          sums[threadIdx.x + half] * expf(tops[threadIdx.x + half] - higher);
      tops[threadIdx.x] = higher;
    }
    __syncthreads();
  }
  const float shift = tops[0] + logf(sums[0]);

  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    out[base + c] = __half2float(x[base + c]) - shift;
  }
}

extern "C" int log_softmax(const __half* x, float* out, int64_t rows, int64_t cols,
                           hipStream_t stream) {
  log_softmax_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(x, out, cols);
  return hipGetLastError();
}
