// Decode with an int8 cache: one block of 64 threads a query head of one sequence; a thread keeps
// the columns of its lane.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;
constexpr int kMost = 2;  // columns of a thread: head_dim is at most 128

__device__ float block_sum(float value) {
  for (int step = warpSize / 2; step > 0; step /= 2) value += __shfl_xor(value, step);
  if (warpSize >= kThreads) return value;
  __shared__ float parts[kThreads];  // on a GPU whose waves are narrower than the block
  parts[threadIdx.x] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int wave = 0; wave < kThreads; wave += warpSize) sum += parts[wave];
  __syncthreads();
  return sum;
}

__global__ void decode_kernel(const __half* q, const int8_t* k_code, const float* k_scale,
                              const int8_t* v_code, const float* v_scale, const int32_t* length,
                              float scale, __half* out, int64_t kv_heads, int64_t group,
                              int64_t keys, int64_t width) {
  const int64_t batch = blockIdx.x, head = blockIdx.y, kv_head = head / group;
  const int64_t query = (batch * kv_heads * group + head) * width;
  float mine[kMost] = {0.0f, 0.0f}, sum[kMost] = {0.0f, 0.0f};
  for (int i = 0; i < kMost; ++i) {
    const int64_t c = threadIdx.x + i * kThreads;
    if (c < width) mine[i] = __half2float(q[query + c]) * scale;
  }
  float top = -INFINITY, total = 0.0f;
  for (int64_t j = 0; j < length[batch]; ++j) {
    const int64_t row = (batch * keys + j) * kv_heads + kv_head;
    float product = 0.0f;
    for (int i = 0; i < kMost; ++i) {
      const int64_t c = threadIdx.x + i * kThreads;
      if (c < width) product += mine[i] * (float)k_code[row * width + c];
    }
    const float score = block_sum(product) * k_scale[row];
    const float higher = fmaxf(top, score);
    const float shrink = expf(top - higher), weight = expf(score - higher);
    total = total * shrink + weight;
    for (int i = 0; i < kMost; ++i) {
      const int64_t c = threadIdx.x + i * kThreads;
      if (c < width) sum[i] = sum[i] * shrink + weight * v_scale[row] * (float)v_code[row * width + c];
    }
    top = higher;
  }
  for (int i = 0; i < kMost; ++i) {
    const int64_t c = threadIdx.x + i * kThreads;
    if (c < width) out[query + c] = __float2half(sum[i] / total);
  }
}

extern "C" int int8_kv_decode(const __half* q, const int8_t* k_code, const float* k_scale, const
                              int8_t* v_code, const float* v_scale, const int32_t* length, float scale, __half* out, int64_t
                              batch, int64_t kv_heads, int64_t group, int64_t keys, int64_t head_dim, hipStream_t stream) {
  decode_kernel<<<dim3(batch, kv_heads * group), dim3(kThreads), 0, stream>>>(
      q, k_code, k_scale, v_code, v_scale, length, scale, out, kv_heads, group, keys, head_dim);
  return hipGetLastError();
}
