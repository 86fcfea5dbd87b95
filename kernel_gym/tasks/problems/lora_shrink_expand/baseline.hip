// LoRA for many adapters: one block of 256 threads a token. The product with a goes through shared
// memory, one column of a at a time; then each thread makes outputs of its own.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kThreads = 256;
constexpr int kMaxRank = 64;

__global__ void lora_kernel(const __half* x, const __half* a, const __half* b, const float* scale,
                            const int32_t* adapter, const __half* base, __half* out, int64_t rank,
                            int64_t width, int64_t out_width) {
  __shared__ float partial[kThreads];
  __shared__ float low[kMaxRank];
  const int64_t token = blockIdx.x;
  const int lane = threadIdx.x;
  const int64_t mine = adapter[token];

  if (mine >= 0) {
    for (int64_t r = 0; r < rank; ++r) {
      float sum = 0.0f;
      for (int64_t i = lane; i < width; i += kThreads) {
        sum += __half2float(x[token * width + i]) *
               __half2float(a[(mine * width + i) * rank + r]);
      }
      partial[lane] = sum;
      __syncthreads();
      for (int half = kThreads / 2; half > 0; half /= 2) {
        if (lane < half) partial[lane] += partial[lane + half];
        __syncthreads();
      }
      if (lane == 0) low[r] = partial[0] * scale[mine];
      __syncthreads();
    }
  }
  for (int64_t i = lane; i < out_width; i += kThreads) {
    float sum = __half2float(base[token * out_width + i]);
    if (mine >= 0) {
      for (int64_t r = 0; r < rank; ++r) {
        sum += low[r] * __half2float(b[(mine * rank + r) * out_width + i]);
      }
    }
    out[token * out_width + i] = __float2half(sum);
  }
}

extern "C" int lora_shrink_expand(const __half* x, const __half* a, const __half* b,
                                  const float* scale, const int32_t* adapter, const __half* base,
                                  __half* out, int64_t tokens, int64_t adapters, int64_t rank,
                                  int64_t width, int64_t out_width, hipStream_t stream) {
  lora_kernel<<<dim3(tokens), dim3(kThreads), 0, stream>>>(x, a, b, scale, adapter, base, out, rank,
                                                           width, out_width);
  return hipGetLastError();
}
