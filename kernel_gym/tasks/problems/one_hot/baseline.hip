// One-hot: one block of 64 threads a token.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void one_hot_kernel(const int64_t* ids, int64_t classes, int32_t* out) {
  const int64_t token = blockIdx.x;
  for (int64_t c = threadIdx.x; c < classes; c += kThreads) out[token * classes + c] = c == ids[token];
}

extern "C" int one_hot(const int64_t* ids, int64_t num_classes, int32_t* out, int64_t tokens,
                       hipStream_t stream) {
  one_hot_kernel<<<dim3(tokens), dim3(kThreads), 0, stream>>>(ids, num_classes, out);
  return hipGetLastError();
}
