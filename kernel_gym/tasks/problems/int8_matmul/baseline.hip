// W8A8 product: a block of 16 x 16 threads a tile of the output, operands staged in shared memory,
// one int32 sum a thread, scaled at the end.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kTile = 16;

__global__ void int8_matmul_kernel(const int8_t* a, const int8_t* b, const float* a_scale,
                                   const float* b_scale, __half* out, int64_t m, int64_t n,
                                   int64_t k) {
  __shared__ int a_tile[kTile][kTile];
  __shared__ int b_tile[kTile][kTile];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int64_t row = (int64_t)blockIdx.y * kTile + ty;
  const int64_t col = (int64_t)blockIdx.x * kTile + tx;

  int total = 0;
  for (int64_t start = 0; start < k; start += kTile) {
    a_tile[ty][tx] = row < m && start + tx < k ? a[row * k + start + tx] : 0;
    b_tile[ty][tx] = col < n && start + ty < k ? b[(start + ty) * n + col] : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) total += a_tile[ty][i] * b_tile[i][tx];
    __syncthreads();
  }
  if (row < m && col < n) {
    out[row * n + col] = __float2half((float)total * a_scale[row] * b_scale[col]);
  }
}

extern "C" int int8_matmul(const int8_t* a, const int8_t* b, const float* a_scale,
                           const float* b_scale, __half* out, int64_t m, int64_t n, int64_t k,
                           hipStream_t stream) {
  const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  int8_matmul_kernel<<<grid, dim3(kTile, kTile), 0, stream>>>(a, b, a_scale, b_scale, out, m, n, k);
  return hipGetLastError();
}
