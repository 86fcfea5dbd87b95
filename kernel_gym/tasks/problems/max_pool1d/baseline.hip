// 1-D max pooling: one output a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void max_pool1d_kernel(const __half* x, int window, int stride, int pad, __half* out,
                                  int64_t total, int64_t count, int64_t length) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= total) return;
  const int64_t row = at / count, first = at % count * stride - pad;
  float top = -INFINITY;
  for (int i = 0; i < window; ++i) {
    const int64_t place = first + i;
    if (place >= 0 && place < length) top = fmaxf(top, __half2float(x[row * length + place]));
  }
  out[at] = __float2half(top);
}

extern "C" int max_pool1d(const __half* x, int64_t window, int64_t stride, int64_t pad, __half*
                          out, int64_t batch, int64_t channels, int64_t length, hipStream_t stream) {
  const int64_t count = (length + 2 * pad - window) / stride + 1, total = batch * channels * count;
  max_pool1d_kernel<<<dim3((total + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      x, (int)window, (int)stride, (int)pad, out, total, count, length);
  return hipGetLastError();
}
