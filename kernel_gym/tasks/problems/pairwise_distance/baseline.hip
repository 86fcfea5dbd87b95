// Pairwise distances: one thread a distance, blocks of 16 x 16.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kSide = 16;

__global__ void pairwise_distance_kernel(const float* p, const float* q, float* out, int64_t n,
                                         int64_t m, int64_t dim) {
  const int64_t j = (int64_t)blockIdx.x * kSide + threadIdx.x;
  const int64_t i = (int64_t)blockIdx.y * kSide + threadIdx.y;
  if (i >= n || j >= m) return;
  const float* left = p + ((int64_t)blockIdx.z * n + i) * dim;
  const float* right = q + ((int64_t)blockIdx.z * m + j) * dim;
  float total = 0.0f;
  for (int64_t d = 0; d < dim; ++d) {
    const float difference = left[d] - right[d];
    total += difference * difference;
  }
  out[((int64_t)blockIdx.z * n + i) * m + j] = sqrtf(total);
}

extern "C" int pairwise_distance(const float* p, const float* q, float* out, int64_t batch,
                                 int64_t n, int64_t m, int64_t dim, hipStream_t stream) {
  const dim3 grid((m + kSide - 1) / kSide, (n + kSide - 1) / kSide, batch);
  pairwise_distance_kernel<<<grid, dim3(kSide, kSide), 0, stream>>>(p, q, out, n, m, dim);
  return hipGetLastError();
}
