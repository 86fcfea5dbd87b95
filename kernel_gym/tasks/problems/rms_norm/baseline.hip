// RMS normalisation: one block of 256 threads a row; the sum of squares by a tree in shared memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void rms_norm_kernel(const __half* x, const __half* weight, float eps,
                                __half* out, int64_t cols) {
  __shared__ float scratch[kThreads];
  const int64_t base = (int64_t)blockIdx.x * cols;

  float squares = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float value = __half2float(x[base + c]);
    squares += value * value;
  }
  scratch[threadIdx.x] = squares;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  const float scale = 1.0f / sqrtf(scratch[0] / (float)cols + eps);

  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    out[base + c] =
        __float2half(__half2float(x[base + c]) * scale * __half2float(weight[c]));
  }
}

extern "C" int rms_norm(const __half* x, const __half* weight, float eps,
                        __half* out, int64_t rows, int64_t cols, hipStream_t stream) {
  rms_norm_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(x, weight, eps, out, cols);
  return hipGetLastError();
}
