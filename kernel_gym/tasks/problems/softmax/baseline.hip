// Row-wise softmax: one block of 256 threads a row, three passes over the row,
// reductions in shared memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

// Reduces one value a thread to one value a block: the largest, or the sum.
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

__global__ void softmax_kernel(const __half* x, __half* out, int64_t cols) {
  __shared__ float scratch[kThreads];
  const __half* x_row = x + (int64_t)blockIdx.x * cols;
  __half* out_row = out + (int64_t)blockIdx.x * cols;

  float top = -INFINITY;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) top = fmaxf(top, __half2float(x_row[c]));
  const float row_max = block_reduce<true>(top, scratch);

  float total = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    total += expf(__half2float(x_row[c]) - row_max);
  }
  const float row_sum = block_reduce<false>(total, scratch);

  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    out_row[c] = __float2half(expf(__half2float(x_row[c]) - row_max) / row_sum);
  }
}

extern "C" int softmax(const __half* x, __half* out, int64_t rows, int64_t cols,
                       hipStream_t stream) {
  softmax_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(x, out, cols);
  return hipGetLastError();
}
