// Depthwise convolution: one block of 64 threads a channel of an image, one pixel a thread and turn.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void depthwise_conv2d_kernel(const __half* x, const __half* weight, const __half* bias,
                                        __half* out, int64_t channels, int64_t height,
                                        int64_t width, int64_t reach) {
  const int64_t base = (int64_t)blockIdx.x * height * width;
  const int64_t channel = blockIdx.x % channels;
  const int64_t side = 2 * reach + 1;
  const __half* taps = weight + channel * side * side;
  for (int64_t at = threadIdx.x; at < height * width; at += kThreads) {
    float total = __half2float(bias[channel]);
    for (int64_t i = 0; i < side; ++i) {
      const int64_t y = at / width + i - reach;
      if (y < 0 || y >= height) continue;
      for (int64_t j = 0; j < side; ++j) {
        const int64_t c = at % width + j - reach;
        if (c < 0 || c >= width) continue;
        total += __half2float(taps[i * side + j]) * __half2float(x[base + y * width + c]);
      }
    }
    out[base + at] = __float2half(total);
  }
}

extern "C" int depthwise_conv2d(const __half* x, const __half* weight, const __half* bias,
                                __half* out, int64_t batch, int64_t channels, int64_t height,
                                int64_t width, int64_t reach, hipStream_t stream) {
  depthwise_conv2d_kernel<<<dim3(batch * channels), dim3(kThreads), 0, stream>>>(
      x, weight, bias, out, channels, height, width, reach);
  return hipGetLastError();
}
