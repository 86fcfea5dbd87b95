// Row gather: one block of 256 threads a token.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void gather_rows_kernel(const __half* table, const int64_t* ids, __half* out,
                                   int64_t dim) {
  const __half* row = table + ids[blockIdx.x] * dim;
  for (int64_t c = threadIdx.x; c < dim; c += kThreads) out[blockIdx.x * dim + c] = row[c];
}

extern "C" int gather_rows(const __half* table, const int64_t* ids, __half* out, int64_t vocab,
                           int64_t tokens, int64_t dim, hipStream_t stream) {
  gather_rows_kernel<<<dim3(tokens), dim3(kThreads), 0, stream>>>(table, ids, out, dim);
  return hipGetLastError();
}
