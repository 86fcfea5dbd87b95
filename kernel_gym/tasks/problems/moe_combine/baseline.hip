// Combination of experts: one block a token, one thread a column at a time.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void combine_kernel(const __half* y, const int32_t* place, const float* weight,
                               const __half* residual, float factor, __half* out, int64_t top_k,
                               int64_t hidden) {
  const int64_t token = blockIdx.x;
  for (int64_t c = threadIdx.x; c < hidden; c += kThreads) {
    float total = 0.0f;
    for (int64_t k = 0; k < top_k; ++k) {
      const int64_t row = place[token * top_k + k];
      if (row >= 0) total += weight[token * top_k + k] * __half2float(y[row * hidden + c]);
    }
    const int64_t at = token * hidden + c;
    out[at] = __float2half(__half2float(residual[at]) + factor * total);
  }
}

extern "C" int moe_combine(const __half* y, const int32_t* place, const float* weight, const
                           __half* residual, float factor, __half* out, int64_t tokens, int64_t top_k, int64_t rows,
                           int64_t hidden, hipStream_t stream) {
  combine_kernel<<<dim3(tokens), dim3(kThreads), 0, stream>>>(y, place, weight, residual, factor,
                                                              out, top_k, hidden);
  return hipGetLastError();
}
