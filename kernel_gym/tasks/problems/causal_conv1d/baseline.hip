// Causal convolution: one block of 128 threads a channel, one step a thread and turn.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 128;

__global__ void causal_conv1d_kernel(const __half* x, const __half* weight, const __half* bias,
                                     __half* out, int64_t channels, int64_t time, int64_t taps) {
  const int64_t base = (int64_t)blockIdx.x * time;
  const int64_t channel = blockIdx.x % channels;
  for (int64_t t = threadIdx.x; t < time; t += kThreads) {
    float y = __half2float(bias[channel]);
    for (int64_t j = 0; j < taps; ++j) {
      const int64_t source = t - taps + 1 + j;
      if (source >= 0) {
        y += __half2float(weight[channel * taps + j]) * __half2float(x[base + source]);
      }
    }
    out[base + t] = __float2half(y / (1.0f + expf(-y)));
  }
}

extern "C" int causal_conv1d(const __half* x, const __half* weight, const __half* bias, __half* out,
                             int64_t batch, int64_t channels, int64_t time, int64_t taps,
                             hipStream_t stream) {
  causal_conv1d_kernel<<<dim3(batch * channels), dim3(kThreads), 0, stream>>>(x, weight, bias, out,
                                                                              channels, time, taps);
  return hipGetLastError();
}
