// 3-D average pooling: one output a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void avg_pool3d_kernel(const __half* x, int window, int stride, __half* out,
                                  int64_t total, int od, int oh, int ow, int depth, int height,
                                  int width) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= total) return;
  const int64_t c = at % ow * stride, r = at / ow % oh * stride;
  const int64_t d = at / (ow * oh) % od * stride, plane = at / ((int64_t)ow * oh * od);
  float sum = 0.0f;
  for (int i = 0; i < window; ++i) {
    for (int j = 0; j < window; ++j) {
      const __half* line = x + ((plane * depth + d + i) * height + r + j) * width + c;
      for (int k = 0; k < window; ++k) sum += __half2float(line[k]);
    }
  }
  out[at] = __float2half(sum / (float)(window * window * window));
}

extern "C" int avg_pool3d(const __half* x, int64_t window, int64_t stride, __half* out, int64_t
                          batch, int64_t channels, int64_t depth, int64_t height, int64_t width, hipStream_t stream) {
  const int64_t od = (depth - window) / stride + 1, oh = (height - window) / stride + 1;
  const int64_t ow = (width - window) / stride + 1, total = batch * channels * od * oh * ow;
  avg_pool3d_kernel<<<dim3((total + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      x, (int)window, (int)stride, out, total, (int)od, (int)oh, (int)ow, (int)depth, (int)height,
      (int)width);
  return hipGetLastError();
}
