// Grouped convolution: one output a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void grouped_conv2d_kernel(const __half* x, const __half* weight, int groups, int stride,
                                      int dilation, __half* out, int channels, int filters,
                                      int height, int width, int window, int oh, int ow) {
  const int pixel = blockIdx.y * kThreads + threadIdx.x;
  if (pixel >= oh * ow) return;
  const int64_t plane = blockIdx.x;
  const int64_t f = plane % (groups * filters), batch = plane / (groups * filters);
  const int y = pixel / ow * stride - window / 2 * dilation;
  const int z = pixel % ow * stride - window / 2 * dilation;
  const __half* image = x + (batch * groups + f / filters) * channels * height * width;
  float sum = 0.0f;
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < window; ++i) {
      const int row = y + i * dilation;
      if (row < 0 || row >= height) continue;
      for (int j = 0; j < window; ++j) {
        const int col = z + j * dilation;
        if (col < 0 || col >= width) continue;
        sum += __half2float(weight[((f * channels + c) * window + i) * window + j]) *
               __half2float(image[((int64_t)c * height + row) * width + col]);
      }
    }
  }
  out[plane * oh * ow + pixel] = __float2half(sum);
}

extern "C" int grouped_conv2d(const __half* x, const __half* weight, int64_t groups, int64_t stride,
                              int64_t dilation, __half* out, int64_t batch, int64_t channels,
                              int64_t filters, int64_t height, int64_t width, int64_t window,
                              hipStream_t stream) {
  const int64_t oh = (height - 1) / stride + 1, ow = (width - 1) / stride + 1;
  const dim3 grid(batch * groups * filters, (oh * ow + kThreads - 1) / kThreads);
  grouped_conv2d_kernel<<<grid, dim3(kThreads), 0, stream>>>(
      x, weight, (int)groups, (int)stride, (int)dilation, out, (int)channels, (int)filters,
      (int)height, (int)width, (int)window, (int)oh, (int)ow);
  return hipGetLastError();
}
