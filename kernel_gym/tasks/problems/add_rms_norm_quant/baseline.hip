// Addition, RMS norm and quantisation: one block of 256 threads a row, three passes over the row,
// reductions in shared memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kThreads = 256;

// Reduces one value a thread to one value a block: the largest, or the sum.
template <bool kMax>
__device__ float block_reduce(float value, float* scratch) {
  const int lane = threadIdx.x;
  __syncthreads();
  scratch[lane] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half) {
      const float other = scratch[lane + half];
      scratch[lane] = kMax ? fmaxf(scratch[lane], other) : scratch[lane] + other;
    }
    __syncthreads();
  }
  return scratch[0];
}

__global__ void add_rms_norm_quant_kernel(const __half* x, const __half* residual,
                                          const __half* weight, float eps, int8_t* q, float* scale,
                                          __half* residual_out, int64_t cols) {
  __shared__ float scratch[kThreads];
  const int64_t base = (int64_t)blockIdx.x * cols;

  float squares = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float h = __half2float(x[base + c]) + __half2float(residual[base + c]);
    residual_out[base + c] = __float2half(h);
    squares += h * h;
  }
  const float norm = 1.0f / sqrtf(block_reduce<false>(squares, scratch) / (float)cols + eps);

  float top = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float h = __half2float(x[base + c]) + __half2float(residual[base + c]);
    top = fmaxf(top, fabsf(h * norm * __half2float(weight[c])));
  }
  const float step = fmaxf(block_reduce<true>(top, scratch), 1e-8f) / 127.0f;
  if (threadIdx.x == 0) scale[blockIdx.x] = step;

  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float h = __half2float(x[base + c]) + __half2float(residual[base + c]);
    q[base + c] = (int8_t)rintf(h * norm * __half2float(weight[c]) / step);
  }
}

extern "C" int add_rms_norm_quant(const __half* x, const __half* residual, const __half* weight,
                                  float eps, int8_t* q, float* scale, __half* residual_out,
                                  int64_t rows, int64_t cols, hipStream_t stream) {
  add_rms_norm_quant_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(
      x, residual, weight, eps, q, scale, residual_out, cols);
  return hipGetLastError();
}
