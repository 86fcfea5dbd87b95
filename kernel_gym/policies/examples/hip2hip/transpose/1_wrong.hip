// Wrong: does not compile, a constant is misspelt.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kTile = 32;
constexpr int kRows = 8;

__global__ void transpose_kernel(const float* x, float* out, int rows, int cols) {
  __shared__ float tile[kTile][kTile + 1];
  const int left = blockIdx.x * kTile;
  const int top = blockIdx.y * kTile;

  // Positions beyond the edge read the last row or column again: no branch splits the loads.
  float item[kTile / kRows];
  const int col = min(left + (int)threadIdx.x, cols - 1);
#pragma unroll
  for (int i = 0; i < kTile / kRows; ++i) {
    const int row = min(top + (int)threadIdx.y + i * kRows, rows - 1);
    item[i] = x[(int64_t)row * cols + col];
  }
#pragma unroll
  for (int i = 0; i < kTile / kRows; ++i) {
    tile[threadIdx.y + i * kRow][threadIdx.x] = item[i];
  }
  __syncthreads();

  const int row = top + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kTile / kRows; ++i) {
    const int out_row = left + threadIdx.y + i * kRows;
    if (out_row < cols && row < rows) {
      out[(int64_t)out_row * rows + row] = tile[threadIdx.x][threadIdx.y + i * kRows];
    }
  }
}

extern "C" int transpose(const float* x, float* out, int64_t rows, int64_t cols,
                         hipStream_t stream) {
  const dim3 grid((cols + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  transpose_kernel<<<grid, dim3(kTile, kRows), 0, stream>>>(x, out, (int)rows, (int)cols);
  return hipGetLastError();
}
