// Pixel shuffle: one output pixel a thread, which finds its source.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void pixel_shuffle_kernel(const __half* x, int64_t factor, __half* out, int64_t count,
                                     int64_t height, int64_t width) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= count) return;
  const int64_t col = at % (width * factor);
  const int64_t row = at / (width * factor) % (height * factor);
  const int64_t plane = at / (width * factor) / (height * factor);
  const int64_t channel = (plane * factor + row % factor) * factor + col % factor;
  out[at] = x[(channel * height + row / factor) * width + col / factor];
}

extern "C" int pixel_shuffle(const __half* x, int64_t factor, __half* out, int64_t batch,
                             int64_t channels, int64_t height, int64_t width, hipStream_t stream) {
  const int64_t count = batch * channels * height * width * factor * factor;
  pixel_shuffle_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      x, factor, out, count, height, width);
  return hipGetLastError();
}
