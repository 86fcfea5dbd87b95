// Bias, GELU, residual: one thread an element.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kThreads = 256;

__global__ void bias_residual_gelu_kernel(const __half* x, const __half* bias,
                                          const __half* residual, __half* out, int64_t count,
                                          int64_t cols) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const float h = __half2float(x[i]) + __half2float(bias[i % cols]);
  const float gelu = 0.5f * h * (1.0f + erff(h * 0.70710678f));
  out[i] = __float2half(__half2float(residual[i]) + gelu);
}

extern "C" int bias_residual_gelu(const __half* x, const __half* bias, const __half* residual,
                                  __half* out, int64_t rows, int64_t cols, hipStream_t stream) {
  const int64_t count = rows * cols;
  const dim3 grid((count + kThreads - 1) / kThreads);
  bias_residual_gelu_kernel<<<grid, dim3(kThreads), 0, stream>>>(x, bias, residual, out, count,
                                                                 cols);
  return hipGetLastError();
}
