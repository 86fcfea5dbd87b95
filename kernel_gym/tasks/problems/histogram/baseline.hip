// Histogram: a kernel writes zeros, another counts one code a thread by atomics on global memory.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void zero_kernel(int32_t* out, int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at < count) out[at] = 0;
}

__global__ void histogram_kernel(const int32_t* codes, int64_t bins, int32_t* out, int64_t cols,
                                 int64_t strips) {
  const int64_t row = blockIdx.x / strips;
  const int64_t at = blockIdx.x % strips * kThreads + threadIdx.x;
  if (at >= cols) return;
  const int32_t code = codes[row * cols + at];
  if (code >= 0 && code < bins) atomicAdd(&out[row * bins + code], 1);
}

extern "C" int histogram(const int32_t* codes, int64_t num_bins, int32_t* out, int64_t rows,
                         int64_t cols, hipStream_t stream) {
  const int64_t count = rows * num_bins;
  zero_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(out, count);
  const int64_t strips = (cols + kThreads - 1) / kThreads;
  histogram_kernel<<<dim3(rows * strips), dim3(kThreads), 0, stream>>>(codes, num_bins, out, cols,
                                                                       strips);
  return hipGetLastError();
}
