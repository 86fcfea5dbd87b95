// Huber loss: one block of 256 threads a row, summed by a tree in shared memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void huber_loss_kernel(const __half* prediction, const __half* target, float delta,
                                  __half* loss, int64_t cols) {
  __shared__ float scratch[kThreads];
  const int64_t base = (int64_t)blockIdx.x * cols;
  float total = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float size = fabsf(__half2float(prediction[base + c]) - __half2float(target[base + c]));
    total += size <= delta ? 0.5f * size * size : delta * (size - 0.5f * delta);
  }
  scratch[threadIdx.x] = total;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) loss[blockIdx.x] = __float2half(scratch[0] / (float)cols);
}

extern "C" int huber_loss(const __half* prediction, const __half* target, float delta, __half* loss,
                          int64_t rows, int64_t cols, hipStream_t stream) {
  huber_loss_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(prediction, target, delta, loss,
                                                               cols);
  return hipGetLastError();
}
