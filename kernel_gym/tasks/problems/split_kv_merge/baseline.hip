// Merge of partial attention: one block a head, one thread a column.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 128;

__global__ void merge_kernel(const float* part, const float* lse, __half* out, float* total,
                             int64_t splits, int64_t width) {
  const int64_t head = blockIdx.x;
  const float* mine = lse + head * splits;
  float top = -INFINITY;
  for (int64_t s = 0; s < splits; ++s) top = fmaxf(top, mine[s]);
  float sum = 0.0f;
  for (int64_t s = 0; s < splits; ++s) sum += expf(mine[s] - top);
  for (int64_t c = threadIdx.x; c < width; c += kThreads) {
    float value = 0.0f;
    for (int64_t s = 0; s < splits; ++s) {
      value += expf(mine[s] - top) * part[(head * splits + s) * width + c];
    }
    out[head * width + c] = __float2half(value / sum);
  }
  if (threadIdx.x == 0) total[head] = top + logf(sum);
}

extern "C" int split_kv_merge(const float* part, const float* lse, __half* out, float* total,
                              int64_t batch, int64_t heads, int64_t splits, int64_t head_dim, hipStream_t stream) {
  merge_kernel<<<dim3(batch * heads), dim3(kThreads), 0, stream>>>(part, lse, out, total, splits,
                                                                   head_dim);
  return hipGetLastError();
}
