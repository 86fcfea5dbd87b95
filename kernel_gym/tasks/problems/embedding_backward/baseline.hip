// Embedding backward: a kernel writes zeros, another adds one token a block by atomics.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 128;

__global__ void zero_kernel(float* out, int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at < count) out[at] = 0.0f;
}

__global__ void add_kernel(const __half* grad, const int64_t* ids, int64_t padding, float* out,
                           int64_t dim) {
  const int64_t word = ids[blockIdx.x];
  if (word == padding) return;
  for (int64_t c = threadIdx.x; c < dim; c += kThreads) {
    atomicAdd(&out[word * dim + c], __half2float(grad[blockIdx.x * dim + c]));
  }
}

extern "C" int embedding_backward(const __half* grad, const int64_t* ids, int64_t vocab, int64_t
                                  padding, float* out, int64_t tokens, int64_t dim, hipStream_t stream) {
  const int64_t count = vocab * dim;
  zero_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(out, count);
  add_kernel<<<dim3(tokens), dim3(kThreads), 0, stream>>>(grad, ids, padding, out, dim);
  return hipGetLastError();
}
