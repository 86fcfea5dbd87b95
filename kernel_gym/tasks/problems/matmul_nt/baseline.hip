// x @ weight^T: a block of 16 x 16 threads a tile of the output, both operands staged in shared
// memory row by row, one output a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kTile = 16;

__global__ void matmul_nt_kernel(const __half* x, const __half* weight, __half* out, int64_t m,
                                 int64_t n, int64_t k) {
  __shared__ float x_tile[kTile][kTile + 1];
  __shared__ float w_tile[kTile][kTile + 1];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int64_t row = (int64_t)blockIdx.y * kTile + ty;
  const int64_t col = (int64_t)blockIdx.x * kTile + tx;
  const int64_t w_row = (int64_t)blockIdx.x * kTile + ty;

  float total = 0.0f;
  for (int64_t start = 0; start < k; start += kTile) {
    const bool inside = start + tx < k;
    x_tile[ty][tx] = row < m && inside ? __half2float(x[row * k + start + tx]) : 0.0f;
    w_tile[ty][tx] = w_row < n && inside ? __half2float(weight[w_row * k + start + tx]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) total += x_tile[ty][i] * w_tile[tx][i];
    __syncthreads();
  }
  if (row < m && col < n) out[row * n + col] = __float2half(total);
}

extern "C" int matmul_nt(const __half* x, const __half* weight, __half* out, int64_t m, int64_t n,
                         int64_t k, hipStream_t stream) {
  const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  matmul_nt_kernel<<<grid, dim3(kTile, kTile), 0, stream>>>(x, weight, out, m, n, k);
  return hipGetLastError();
}
