// Max pooling backward: one pixel a thread looks at the windows that cover it.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void max_pool2d_backward_kernel(const __half* grad, const int64_t* index, int rows,
                                           int cols, int height, int width, int window, int stride,
                                           __half* dx, int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= count) return;
  const int64_t plane = at / (height * width);
  const int pixel = (int)(at % (height * width));
  const int y = pixel / width + window / 2, x = pixel % width + window / 2;
  float total = 0.0f;
  for (int row = y / stride; row >= 0 && row * stride > y - window; --row) {
    for (int col = x / stride; col >= 0 && col * stride > x - window; --col) {
      if (row >= rows || col >= cols) continue;
      const int64_t source = (plane * rows + row) * cols + col;
      if (index[source] == pixel) total += __half2float(grad[source]);
    }
  }
  dx[at] = __float2half(total);
}

extern "C" int max_pool2d_backward(const __half* grad, const int64_t* index, int64_t height,
                                   int64_t width, int64_t window, int64_t stride, __half* dx, int64_t batch, int64_t channels,
                                   hipStream_t stream) {
  const int64_t rows = (height + 2 * (window / 2) - window) / stride + 1;
  const int64_t cols = (width + 2 * (window / 2) - window) / stride + 1;
  const int64_t count = batch * channels * height * width;
  max_pool2d_backward_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      grad, index, rows, cols, height, width, window, stride, dx, count);
  return hipGetLastError();
}
