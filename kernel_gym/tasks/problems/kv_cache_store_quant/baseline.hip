// Quantised cache store: one block of 64 threads a head of a token, first its key, then its value.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kThreads = 64;

__device__ void store_quantised(const __half* x, int8_t* cache, float* scale, int64_t source,
                                int64_t target, int64_t width, float* scratch) {
  const int lane = threadIdx.x;
  float top = 0.0f;
  for (int64_t i = lane; i < width; i += kThreads) {
    top = fmaxf(top, fabsf(__half2float(x[source * width + i])));
  }
  __syncthreads();
  scratch[lane] = top;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half) scratch[lane] = fmaxf(scratch[lane], scratch[lane + half]);
    __syncthreads();
  }
  const float step = fmaxf(scratch[0], 1e-8f) / 127.0f;
  for (int64_t i = lane; i < width; i += kThreads) {
    cache[target * width + i] = (int8_t)rintf(__half2float(x[source * width + i]) / step);
  }
  if (lane == 0) scale[target] = step;
}

__global__ void kv_cache_store_kernel(const __half* k, const __half* v, const int64_t* slot,
                                      int8_t* k_cache, int8_t* v_cache, float* k_scale,
                                      float* v_scale, int64_t heads, int64_t width) {
  __shared__ float scratch[kThreads];
  const int64_t source = (int64_t)blockIdx.x * heads + blockIdx.y;
  const int64_t target = slot[blockIdx.x] * heads + blockIdx.y;
  store_quantised(k, k_cache, k_scale, source, target, width, scratch);
  store_quantised(v, v_cache, v_scale, source, target, width, scratch);
}

extern "C" int kv_cache_store_quant(const __half* k, const __half* v, const int64_t* slot,
                                    int8_t* k_cache, int8_t* v_cache, float* k_scale,
                                    float* v_scale, int64_t tokens, int64_t heads, int64_t head_dim,
                                    hipStream_t stream) {
  kv_cache_store_kernel<<<dim3(tokens, heads), dim3(kThreads), 0, stream>>>(
      k, v, slot, k_cache, v_cache, k_scale, v_scale, heads, head_dim);
  return hipGetLastError();
}
