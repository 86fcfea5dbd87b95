// Scatter-add: a kernel writes zeros, another adds one element a thread and step by atomics.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void zero_kernel(int32_t* out, int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at < count) out[at] = 0;
}

__global__ void scatter_add_rows_kernel(const int32_t* values, const int64_t* ids, int32_t* out,
                                        int64_t dim) {
  int32_t* row = out + ids[blockIdx.x] * dim;
  for (int64_t c = threadIdx.x; c < dim; c += kThreads) {
    atomicAdd(&row[c], values[blockIdx.x * dim + c]);
  }
}

extern "C" int scatter_add_rows(const int32_t* values, const int64_t* ids, int64_t num_rows,
                                int32_t* out, int64_t tokens, int64_t dim, hipStream_t stream) {
  const int64_t count = num_rows * dim;
  zero_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(out, count);
  scatter_add_rows_kernel<<<dim3(tokens), dim3(kThreads), 0, stream>>>(values, ids, out, dim);
  return hipGetLastError();
}
