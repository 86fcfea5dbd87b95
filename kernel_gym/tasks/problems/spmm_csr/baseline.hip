// Sparse product: one block of 64 threads a row, one feature a thread at a time.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void spmm_kernel(const int32_t* start, const int32_t* column, const __half* value,
                            const __half* x, __half* out, int64_t features) {
  const int64_t row = blockIdx.x;
  for (int64_t f = threadIdx.x; f < features; f += kThreads) {
    float total = 0.0f;
    for (int32_t j = start[row]; j < start[row + 1]; ++j) {
      total += __half2float(value[j]) * __half2float(x[column[j] * features + f]);
    }
    out[row * features + f] = __float2half(total);
  }
}

extern "C" int spmm_csr(const int32_t* start, const int32_t* column, const __half* value, const
                        __half* x, __half* out, int64_t rows, int64_t cols, int64_t nonzeros, int64_t features,
                        hipStream_t stream) {
  spmm_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(start, column, value, x, out, features);
  return hipGetLastError();
}
