// Backward of RMS norm: one block of 256 threads a row writes dx and keeps r; then one thread a
// column adds up dweight.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;
constexpr int64_t kChunk = 32;

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

__global__ void dx_kernel(const __half* grad, const __half* x,
                          const __half* weight, float eps, __half* dx, float* r,
                          int64_t cols) {
  __shared__ float scratch[kThreads];
  const int64_t base = (int64_t)blockIdx.x * cols;
  float squares = 0.0f, products = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float value = __half2float(x[base + c]);
    squares += value * value;
    products += value * __half2float(grad[base + c]) * __half2float(weight[c]);
  }
  const float factor = 1.0f / sqrtf(block_sum(squares, scratch) / cols + eps);
  const float mean = block_sum(products, scratch) * factor / cols;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float n = __half2float(x[base + c]) * factor;
    const float g = __half2float(grad[base + c]) * __half2float(weight[c]);
    dx[base + c] = __float2half(factor * (g - n * mean));
  }
  if (threadIdx.x == 0) r[blockIdx.x] = factor;
}

__global__ void dweight_kernel(const __half* grad, const __half* x, const float* r,
                               float* dweight, int64_t rows, int64_t cols) {
  const int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  float total = 0.0f;
  for (int64_t first = 0; first < rows; first += kChunk) {
    const int64_t last = first + kChunk < rows ? first + kChunk : rows;
    float part = 0.0f;  // sums of short chunks round less than one long sum
    for (int64_t i = first; i < last; ++i) {
      part += __half2float(grad[i * cols + c]) * __half2float(x[i * cols + c]) * r[i];
    }
    total += part;
  }
  dweight[c] = total;
}

extern "C" int rms_norm_backward(const __half* grad, const __half* x, const __half* weight,
                                 float eps, __half* dx, float* dweight, int64_t rows, int64_t cols, hipStream_t stream) {
  float* r = nullptr;
  if (hipMallocAsync((void**)&r, rows * sizeof(float), stream) != hipSuccess) return hipGetLastError();
  dx_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(grad, x, weight, eps, dx, r, cols);
  dweight_kernel<<<dim3((cols + 63) / 64), dim3(64), 0, stream>>>(grad, x, r, dweight, rows, cols);
  (void)hipFreeAsync(r, stream);
  return hipGetLastError();
}
