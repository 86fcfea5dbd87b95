// Cholesky: one block of 64 threads a matrix in shared memory; a thread owns a row.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;
constexpr int kMax = 32;

__global__ void cholesky_kernel(const float* a, float* out, int64_t n) {
  __shared__ float m[kMax][kMax + 1];
  const int row = threadIdx.x;
  const int64_t base = (int64_t)blockIdx.x * n * n;
  for (int64_t i = threadIdx.x; i < n * n; i += kThreads) m[i / n][i % n] = a[base + i];
  __syncthreads();
  for (int j = 0; j < n; ++j) {
    if (row == j) m[j][j] = sqrtf(m[j][j]);
    __syncthreads();
    if (row > j && row < n) m[row][j] /= m[j][j];
    __syncthreads();
    if (row > j && row < n) {
      for (int c = j + 1; c <= row; ++c) m[row][c] -= m[row][j] * m[c][j];
    }
    __syncthreads();
  }
  for (int64_t i = threadIdx.x; i < n * n; i += kThreads) {
    out[base + i] = i % n <= i / n ? m[i / n][i % n] : 0.0f;
  }
}

extern "C" int batched_cholesky(const float* a, float* out, int64_t batch, int64_t n,
                                hipStream_t stream) {
  cholesky_kernel<<<dim3(batch), dim3(kThreads), 0, stream>>>(a, out, n);
  return hipGetLastError();
}
