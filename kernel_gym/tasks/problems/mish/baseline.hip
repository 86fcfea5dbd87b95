// Mish: a grid of blocks over all elements, one element a thread. The functions of the C library
// are used as the formula reads.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void mish_kernel(const __half* x, __half* out, int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= count) return;
  const float value = __half2float(x[at]);
  const float softplus = fmaxf(value, 0.0f) + log1pf(expf(-fabsf(value)));
  out[at] = __float2half(value * tanhf(softplus));
}

extern "C" int mish(const __half* x, __half* out, int64_t rows, int64_t cols, hipStream_t stream) {
  const int64_t count = rows * cols;
  mish_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(x, out, count);
  return hipGetLastError();
}
