// Quantisation by rows: one block of 256 threads a row; a tree in shared memory finds the largest
// magnitude, then the row is read again and rounded.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kThreads = 256;

__global__ void quantize_kernel(const __half* x, int8_t* q, float* scale, int64_t cols) {
  __shared__ float top[kThreads];
  const int lane = threadIdx.x;
  const int64_t base = (int64_t)blockIdx.x * cols;
  float largest = 0.0f;
  for (int64_t c = lane; c < cols; c += kThreads) {
    largest = fmaxf(largest, fabsf(__half2float(x[base + c])));
  }
  top[lane] = largest;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half) top[lane] = fmaxf(top[lane], top[lane + half]);
    __syncthreads();
  }
  const float step = fmaxf(top[0], 1e-8f) / 127.0f;
  if (lane == 0) scale[blockIdx.x] = step;
  for (int64_t c = lane; c < cols; c += kThreads) {
    q[base + c] = (int8_t)rintf(__half2float(x[base + c]) / step);
  }
}

extern "C" int quantize_per_token_int8(const __half* x, int8_t* q, float* scale, int64_t rows,
                                       int64_t cols, hipStream_t stream) {
  quantize_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(x, q, scale, cols);
  return hipGetLastError();
}
