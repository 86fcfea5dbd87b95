// Feature interaction: one block of 128 threads a sample, its features in shared memory, one thread
// a pair at a time.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kThreads = 128;
constexpr int kMaxFeatures = 64;
constexpr int kMaxWidth = 128;

__global__ void interaction_kernel(const __half* dense, const __half* sparse, __half* out,
                                   int64_t tables, int64_t width) {
  __shared__ float features[kMaxFeatures * kMaxWidth];
  const int64_t batch = blockIdx.x;
  const int64_t pairs = tables * (tables + 1) / 2;
  out += batch * (width + pairs);
  for (int64_t i = threadIdx.x; i < (tables + 1) * width; i += kThreads) {
    features[i] = __half2float(i < width ? dense[batch * width + i]
                                         : sparse[batch * tables * width + i - width]);
    if (i < width) out[i] = dense[batch * width + i];
  }
  __syncthreads();
  for (int64_t pair = threadIdx.x; pair < (tables + 1) * (tables + 1); pair += kThreads) {
    const int64_t i = pair / (tables + 1), j = pair % (tables + 1);
    if (i <= j) continue;
    float sum = 0.0f;
    for (int64_t k = 0; k < width; ++k) sum += features[i * width + k] * features[j * width + k];
    out[width + i * (i - 1) / 2 + j] = __float2half(sum);
  }
}

extern "C" int dlrm_interaction(const __half* dense, const __half* sparse, __half* out,
                                int64_t batch, int64_t tables, int64_t width,
                                hipStream_t stream) {
  interaction_kernel<<<dim3(batch), dim3(kThreads), 0, stream>>>(dense, sparse, out, tables, width);
  return hipGetLastError();
}
