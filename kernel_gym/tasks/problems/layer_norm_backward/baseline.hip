// Backward of layer norm: one block of 256 threads a row writes dx; one thread a column adds up
// dweight and dbias.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__device__ float block_sum(float value, float* scratch) {
  const int lane = threadIdx.x;
  __syncthreads();
  scratch[lane] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half) scratch[lane] += scratch[lane + half];
    __syncthreads();
  }
  return scratch[0];
}

__global__ void dx_kernel(const __half* grad, const __half* x, const float* mean, const float* rstd,
                          const __half* weight, __half* dx, int64_t cols) {
  __shared__ float scratch[kThreads];
  const int64_t base = (int64_t)blockIdx.x * cols;
  const float centre = mean[blockIdx.x], scale = rstd[blockIdx.x];
  float plain = 0.0f, weighted = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float g = __half2float(grad[base + c]) * __half2float(weight[c]);
    plain += g;
    weighted += g * (__half2float(x[base + c]) - centre) * scale;
  }
  const float shift = block_sum(plain, scratch) / cols;
  const float slope = block_sum(weighted, scratch) / cols;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float n = (__half2float(x[base + c]) - centre) * scale;
    const float g = __half2float(grad[base + c]) * __half2float(weight[c]);
    dx[base + c] = __float2half(scale * (g - shift - n * slope));
  }
}

__global__ void sums_kernel(const __half* grad, const __half* x, const float* mean,
                            const float* rstd, __half* dweight, __half* dbias, int64_t rows,
                            int64_t cols) {
  const int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  float slope = 0.0f, shift = 0.0f;
  for (int64_t i = 0; i < rows; ++i) {
    const float g = __half2float(grad[i * cols + c]);
    slope += g * (__half2float(x[i * cols + c]) - mean[i]) * rstd[i];
    shift += g;
  }
  dweight[c] = __float2half(slope);
  dbias[c] = __float2half(shift);
}

extern "C" int layer_norm_backward(const __half* grad, const __half* x, const float* mean, const
                                   float* rstd, const __half* weight, __half* dx, __half* dweight, __half* dbias, int64_t rows,
                                   int64_t cols, hipStream_t stream) {
  dx_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(grad, x, mean, rstd, weight, dx, cols);
  sums_kernel<<<dim3((cols + 63) / 64), dim3(64), 0, stream>>>(grad, x, mean, rstd, dweight, dbias,
                                                               rows, cols);
  return hipGetLastError();
}
