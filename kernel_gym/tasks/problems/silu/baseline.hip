// SiLU: one block of 256 threads a row, one element a thread and step.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void silu_kernel(const __half* x, __half* out, int64_t cols) {
  const int64_t base = (int64_t)blockIdx.x * cols;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float value = __half2float(x[base + c]);
    out[base + c] = __float2half(value / (1.0f + expf(-value)));
  }
}

extern "C" int silu(const __half* x, __half* out, int64_t rows, int64_t cols, hipStream_t stream) {
  silu_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(x, out, cols);
  return hipGetLastError();
}
