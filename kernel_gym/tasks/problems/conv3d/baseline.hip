// 3-D convolution: one output a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void conv3d_kernel(const __half* x, const __half* weight, const __half* bias, int stride,
                              __half* out, int64_t total, int channels, int filters, int depth,
                              int height, int width, int window, int od, int oh, int ow) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= total) return;
  const int64_t row = at / ow;
  const int64_t slab = row / oh;
  const int64_t plane = slab / od;
  const int f = (int)(plane % filters);
  const int64_t batch = plane / filters;
  const int z = (int)(slab % od) * stride - window / 2;
  const int y = (int)(row % oh) * stride - window / 2;
  const int first = (int)(at % ow) * stride - window / 2;
  float sum = 0.0f;
  for (int c = 0; c < channels; ++c) {
    const __half* taps = weight + ((int64_t)f * channels + c) * window * window * window;
    const __half* volume = x + (batch * channels + c) * depth * height * width;
    for (int i = 0; i < window; ++i) {
      if (z + i < 0 || z + i >= depth) continue;
      for (int j = 0; j < window; ++j) {
        if (y + j < 0 || y + j >= height) continue;
        const __half* line = volume + ((int64_t)(z + i) * height + y + j) * width;
        for (int k = 0; k < window; ++k) {
          if (first + k < 0 || first + k >= width) continue;
          sum += __half2float(taps[(i * window + j) * window + k]) * __half2float(line[first + k]);
        }
      }
    }
  }
  out[at] = __float2half(sum + __half2float(bias[f]));
}

extern "C" int conv3d(const __half* x, const __half* weight, const __half* bias, int64_t stride,
                      __half* out, int64_t batch, int64_t channels, int64_t filters, int64_t depth,
                      int64_t height, int64_t width, int64_t window, hipStream_t stream) {
  const int64_t od = (depth - 1) / stride + 1, oh = (height - 1) / stride + 1;
  const int64_t ow = (width - 1) / stride + 1, total = batch * filters * od * oh * ow;
  conv3d_kernel<<<dim3((total + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      x, weight, bias, (int)stride, out, total, (int)channels, (int)filters, (int)depth,
      (int)height, (int)width, (int)window, (int)od, (int)oh, (int)ow);
  return hipGetLastError();
}
