// Embedding bags: one block of 64 threads a bag; each thread sums its columns row after row.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void embedding_bag_kernel(const __half* table, const int64_t* ids, const float* weights,
                                     const int64_t* offsets, __half* out, int64_t dim) {
  for (int64_t c = threadIdx.x; c < dim; c += kThreads) {
    float total = 0.0f;
    for (int64_t j = offsets[blockIdx.x]; j < offsets[blockIdx.x + 1]; ++j) {
      total += weights[j] * __half2float(table[ids[j] * dim + c]);
    }
    out[blockIdx.x * dim + c] = __float2half(total);
  }
}

extern "C" int embedding_bag(const __half* table, const int64_t* ids, const float* weights,
                             const int64_t* offsets, __half* out, int64_t vocab, int64_t bags,
                             int64_t per_bag, int64_t dim, hipStream_t stream) {
  embedding_bag_kernel<<<dim3(bags), dim3(kThreads), 0, stream>>>(table, ids, weights, offsets, out,
                                                                  dim);
  return hipGetLastError();
}
