// Clipping: 256 blocks add up squares, one block adds their sums, then every element is scaled.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;
constexpr int kBlocks = kThreads;  // one block adds their sums

__device__ float block_sum(float value, float* scratch) {
  const int lane = threadIdx.x;
  scratch[lane] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half) scratch[lane] += scratch[lane + half];
    __syncthreads();
  }
  return scratch[0];
}

__global__ void squares_kernel(const float* grad, float* parts, int64_t count) {
  __shared__ float scratch[kThreads];
  float total = 0.0f;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    total += grad[i] * grad[i];
  }
  const float sum = block_sum(total, scratch);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void norm_kernel(const float* parts, float* norm) {
  __shared__ float scratch[kThreads];
  const float sum = block_sum(parts[threadIdx.x], scratch);
  if (threadIdx.x == 0) norm[0] = sqrtf(sum);
}

__global__ void scale_kernel(const float* grad, const float* norm, float limit, float* out,
                             int64_t count) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i < count) out[i] = grad[i] * fminf(1.0f, limit / (norm[0] + 1e-6f));
}

extern "C" int grad_norm_clip(const float* grad, float limit, float* out, float* norm, int64_t
                              rows, int64_t cols, hipStream_t stream) {
  const int64_t count = rows * cols;
  float* parts = nullptr;
  if (hipMallocAsync((void**)&parts, kBlocks * sizeof(float), stream) != hipSuccess) {
    return hipGetLastError();
  }
  squares_kernel<<<dim3(kBlocks), dim3(kThreads), 0, stream>>>(grad, parts, count);
  norm_kernel<<<dim3(1), dim3(kThreads), 0, stream>>>(parts, norm);
  scale_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      grad, norm, limit, out, count);
  (void)hipFreeAsync(parts, stream);
  return hipGetLastError();
}
