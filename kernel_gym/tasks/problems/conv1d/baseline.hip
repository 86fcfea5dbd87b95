// Convolution: one output a thread, channel by channel and tap by tap.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void conv1d_kernel(const __half* x, const __half* weight, const __half* bias,
                              int64_t stride, __half* out, int64_t channels, int64_t time,
                              int64_t length, int64_t taps) {
  const int64_t place = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (place >= length) return;
  const int64_t filter = blockIdx.y, filters = gridDim.y, batch = blockIdx.z;
  const int64_t first = place * stride - taps / 2;
  float total = __half2float(bias[filter]);
  for (int64_t c = 0; c < channels; ++c) {
    const __half* signal = x + (batch * channels + c) * time;
    const __half* tap = weight + (filter * channels + c) * taps;
    for (int64_t j = 0; j < taps; ++j) {
      const int64_t t = first + j;
      if (t >= 0 && t < time) total += __half2float(tap[j]) * __half2float(signal[t]);
    }
  }
  out[(batch * filters + filter) * length + place] = __float2half(total);
}

extern "C" int conv1d(const __half* x, const __half* weight, const __half* bias, int64_t stride,
                      __half* out, int64_t batch, int64_t channels, int64_t filters, int64_t time,
                      int64_t reach, hipStream_t stream) {
  const int64_t taps = 2 * reach + 1;
  const int64_t length = (time - 1) / stride + 1;
  const dim3 grid((length + kThreads - 1) / kThreads, filters, batch);
  conv1d_kernel<<<grid, dim3(kThreads), 0, stream>>>(x, weight, bias, stride, out, channels, time,
                                                     length, taps);
  return hipGetLastError();
}
