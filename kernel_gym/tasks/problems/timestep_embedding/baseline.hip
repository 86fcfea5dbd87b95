// Timestep embedding: one block a timestep, one angle a thread and step.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 128;

__global__ void timestep_embedding_kernel(const float* t, float max_period, __half* out,
                                          int64_t half_dim) {
  __half* row = out + (int64_t)blockIdx.x * 2 * half_dim;
  for (int64_t i = threadIdx.x; i < half_dim; i += kThreads) {
    const float angle = t[blockIdx.x] * expf(-logf(max_period) * (float)i / (float)half_dim);
    row[i] = __float2half(cosf(angle));
    row[half_dim + i] = __float2half(sinf(angle));
  }
}

extern "C" int timestep_embedding(const float* t, int64_t dim, float max_period, __half* out,
                                  int64_t rows, int64_t half, hipStream_t stream) {
  timestep_embedding_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(t, max_period, out, dim / 2);
  return hipGetLastError();
}
