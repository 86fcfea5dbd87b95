// Maximum pooling: one output a thread, nine loads each.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void max_pool2d_kernel(const __half* x, __half* out, int64_t planes, int64_t height,
                                  int64_t width) {
  const int64_t out_height = (height - 1) / 2 + 1;
  const int64_t out_width = (width - 1) / 2 + 1;
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= planes * out_height * out_width) return;
  const int64_t col = at % out_width;
  const int64_t row = at / out_width % out_height;
  const __half* plane = x + at / out_width / out_height * height * width;
  float best = -INFINITY;
  for (int64_t i = 2 * row - 1; i <= 2 * row + 1; ++i) {
    for (int64_t j = 2 * col - 1; j <= 2 * col + 1; ++j) {
      if (i < 0 || i >= height || j < 0 || j >= width) continue;
      best = fmaxf(best, __half2float(plane[i * width + j]));
    }
  }
  out[at] = __float2half(best);
}

extern "C" int max_pool2d(const __half* x, __half* out, int64_t planes, int64_t height,
                          int64_t width, hipStream_t stream) {
  const int64_t count = planes * ((height - 1) / 2 + 1) * ((width - 1) / 2 + 1);
  max_pool2d_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      x, out, planes, height, width);
  return hipGetLastError();
}
