// Batch norm, residual and ReLU: one block of 256 threads a channel of an image.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void batch_norm_add_relu_kernel(const __half* x, const __half* residual,
                                           const float* mean, const float* variance,
                                           const float* weight, const float* bias, float eps,
                                           __half* out, int64_t channels, int64_t pixels) {
  const int64_t base = (int64_t)blockIdx.x * pixels;
  const int64_t c = blockIdx.x % channels;
  for (int64_t i = threadIdx.x; i < pixels; i += kThreads) {
    const float normal = (__half2float(x[base + i]) - mean[c]) / sqrtf(variance[c] + eps);
    const float sum = normal * weight[c] + bias[c] + __half2float(residual[base + i]);
    out[base + i] = __float2half(fmaxf(sum, 0.0f));
  }
}

extern "C" int batch_norm_add_relu(const __half* x, const __half* residual, const float* mean,
                                   const float* variance, const float* weight, const float* bias,
                                   float eps, __half* out, int64_t batch, int64_t channels,
                                   int64_t pixels, hipStream_t stream) {
  batch_norm_add_relu_kernel<<<dim3(batch * channels), dim3(kThreads), 0, stream>>>(
      x, residual, mean, variance, weight, bias, eps, out, channels, pixels);
  return hipGetLastError();
}
