// Single-precision product: a block of 16 x 16 threads a tile of the output, operands staged in
// shared memory, one output a thread.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kTile = 16;

__global__ void matmul_fp32_kernel(const float* a, const float* b, float* out, int64_t m, int64_t n,
                                   int64_t k) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int64_t row = (int64_t)blockIdx.y * kTile + ty;
  const int64_t col = (int64_t)blockIdx.x * kTile + tx;

  float total = 0.0f;
  for (int64_t start = 0; start < k; start += kTile) {
    a_tile[ty][tx] = row < m && start + tx < k ? a[row * k + start + tx] : 0.0f;
    b_tile[ty][tx] = col < n && start + ty < k ? b[(start + ty) * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) total += a_tile[ty][i] * b_tile[i][tx];
    __syncthreads();
  }
  if (row < m && col < n) out[row * n + col] = total;
}

extern "C" int matmul_fp32(const float* a, const float* b, float* out, int64_t m, int64_t n,
                           int64_t k, hipStream_t stream) {
  const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  matmul_fp32_kernel<<<grid, dim3(kTile, kTile), 0, stream>>>(a, b, out, m, n, k);
  return hipGetLastError();
}
