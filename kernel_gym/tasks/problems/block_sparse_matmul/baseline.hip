// Block-sparse product: one block of threads a row of a strip; one output a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void block_sparse_kernel(const __half* x, const __half* w, const int32_t* row,
                                    const int32_t* start, __half* out, int64_t strips_in,
                                    int64_t strips, int64_t block) {
  const int64_t strip = blockIdx.y, i = blockIdx.x;
  const int64_t col = threadIdx.x;
  if (col >= block) return;
  float total = 0.0f;
  for (int32_t b = start[strip]; b < start[strip + 1]; ++b) {
    const __half* mine = x + (i * strips_in + row[b]) * block;
    const __half* weights = w + b * block * block + col;
    for (int64_t c = 0; c < block; ++c) {
      total += __half2float(mine[c]) * __half2float(weights[c * block]);
    }
  }
  out[(i * strips + strip) * block + col] = __float2half(total);
}

extern "C" int block_sparse_matmul(const __half* x, const __half* w, const int32_t* row,
                                   const int32_t* start, __half* out, int64_t rows,
                                   int64_t strips_in, int64_t strips, int64_t blocks, int64_t block,
                                   hipStream_t stream) {
  block_sparse_kernel<<<dim3(rows, strips), dim3(kThreads), 0, stream>>>(x, w, row, start, out,
                                                                         strips_in, strips, block);
  return hipGetLastError();
}
