// Split of packed projections: one block a token, whose threads walk its row.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void qkv_split_kernel(const __half* packed, int64_t heads, int64_t kv_heads, __half* q,
                                 __half* k, __half* v, int64_t tokens, int64_t head_dim) {
  const int64_t token = blockIdx.x;
  const int64_t width = (heads + 2 * kv_heads) * head_dim;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) {
    int64_t head = i / head_dim;
    __half* out = q;
    if (head >= heads + kv_heads) {
      out = v;
      head -= heads + kv_heads;
    } else if (head >= heads) {
      out = k;
      head -= heads;
    }
    out[(head * tokens + token) * head_dim + i % head_dim] = packed[token * width + i];
  }
}

extern "C" int qkv_split(const __half* packed, int64_t num_heads, int64_t num_kv_heads, __half* q,
                         __half* k, __half* v, int64_t tokens, int64_t head_dim,
                         hipStream_t stream) {
  qkv_split_kernel<<<dim3(tokens), dim3(kThreads), 0, stream>>>(packed, num_heads, num_kv_heads, q,
                                                                k, v, tokens, head_dim);
  return hipGetLastError();
}
