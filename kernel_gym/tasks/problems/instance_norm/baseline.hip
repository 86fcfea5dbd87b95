// Instance normalisation: one block of 256 threads a channel of an image, three passes.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__device__ float block_sum(float value, float* scratch) {
  __syncthreads();
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  return scratch[0];
}

__global__ void instance_norm_kernel(const __half* x, const __half* weight, const __half* bias,
                                     float eps, __half* out, int64_t channels, int64_t pixels) {
  __shared__ float scratch[kThreads];
  const int64_t base = (int64_t)blockIdx.x * pixels;
  const int64_t channel = blockIdx.x % channels;

  float total = 0.0f;
  for (int64_t i = threadIdx.x; i < pixels; i += kThreads) total += __half2float(x[base + i]);
  const float mean = block_sum(total, scratch) / (float)pixels;

  float squares = 0.0f;
  for (int64_t i = threadIdx.x; i < pixels; i += kThreads) {
    const float centred = __half2float(x[base + i]) - mean;
    squares += centred * centred;
  }
  const float scale = 1.0f / sqrtf(block_sum(squares, scratch) / (float)pixels + eps);

  const float gain = scale * __half2float(weight[channel]);
  const float shift = __half2float(bias[channel]);
  for (int64_t i = threadIdx.x; i < pixels; i += kThreads) {
    out[base + i] = __float2half((__half2float(x[base + i]) - mean) * gain + shift);
  }
}

extern "C" int instance_norm(const __half* x, const __half* weight, const __half* bias, float eps,
                             __half* out, int64_t batch, int64_t channels, int64_t pixels,
                             hipStream_t stream) {
  instance_norm_kernel<<<dim3(batch * channels), dim3(kThreads), 0, stream>>>(
      x, weight, bias, eps, out, channels, pixels);
  return hipGetLastError();
}
