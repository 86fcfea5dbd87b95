// Adaptive average pooling: one cell a thread, which sums its window.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void adaptive_avg_pool2d_kernel(const __half* x, int64_t cells, __half* out,
                                           int64_t planes, int64_t height, int64_t width) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= planes * cells * cells) return;
  const int64_t i = at / cells % cells;
  const int64_t j = at % cells;
  const __half* plane = x + at / cells / cells * height * width;
  const int64_t top = i * height / cells;
  const int64_t bottom = ((i + 1) * height + cells - 1) / cells;
  const int64_t left = j * width / cells;
  const int64_t right = ((j + 1) * width + cells - 1) / cells;
  float total = 0.0f;
  for (int64_t y = top; y < bottom; ++y) {
    for (int64_t c = left; c < right; ++c) total += __half2float(plane[y * width + c]);
  }
  out[at] = __float2half(total / (float)((bottom - top) * (right - left)));
}

extern "C" int adaptive_avg_pool2d(const __half* x, int64_t num_cells, __half* out, int64_t planes,
                                   int64_t height, int64_t width, hipStream_t stream) {
  const int64_t count = planes * num_cells * num_cells;
  adaptive_avg_pool2d_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0,
                               stream>>>(x, num_cells, out, planes, height, width);
  return hipGetLastError();
}
