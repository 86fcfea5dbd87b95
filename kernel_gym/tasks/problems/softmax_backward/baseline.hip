// Softmax backward: one block of 256 threads a row, two passes over the row.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void softmax_backward_kernel(const __half* grad, const __half* y, float scale,
                                        __half* dx, int64_t cols) {
  __shared__ float scratch[kThreads];
  const int64_t base = (int64_t)blockIdx.x * cols;
  const int lane = threadIdx.x;
  float total = 0.0f;
  for (int64_t c = lane; c < cols; c += kThreads) {
    total += __half2float(grad[base + c]) * __half2float(y[base + c]);
  }
  scratch[lane] = total;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half) scratch[lane] += scratch[lane + half];
    __syncthreads();
  }
  const float sum = scratch[0];
  for (int64_t c = lane; c < cols; c += kThreads) {
    const float p = __half2float(y[base + c]);
    dx[base + c] = __float2half(scale * p * (__half2float(grad[base + c]) - sum));
  }
}

extern "C" int softmax_backward(const __half* grad, const __half* y, float scale, __half* dx,
                                int64_t rows, int64_t cols, hipStream_t stream) {
  softmax_backward_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(grad, y, scale, dx, cols);
  return hipGetLastError();
}
