// Binary cross entropy: one block of 128 threads a row, summed by a tree in shared memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 128;

__global__ void bce_with_logits_kernel(const __half* logits, const __half* target,
                                       const float* pos_weight, __half* loss, int64_t classes) {
  __shared__ float scratch[kThreads];
  const int64_t base = (int64_t)blockIdx.x * classes;
  float total = 0.0f;
  for (int64_t c = threadIdx.x; c < classes; c += kThreads) {
    const float x = __half2float(logits[base + c]);
    const float y = __half2float(target[base + c]);
    const float tail = log1pf(expf(-fabsf(x)));
    total += y * pos_weight[c] * (tail + fmaxf(-x, 0.0f)) + (1.0f - y) * (tail + fmaxf(x, 0.0f));
  }
  scratch[threadIdx.x] = total;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) loss[blockIdx.x] = __float2half(scratch[0] / (float)classes);
}

extern "C" int bce_with_logits(const __half* logits, const __half* target, const float* pos_weight,
                               __half* loss, int64_t rows, int64_t classes, hipStream_t stream) {
  bce_with_logits_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(logits, target, pos_weight,
                                                                    loss, classes);
  return hipGetLastError();
}
