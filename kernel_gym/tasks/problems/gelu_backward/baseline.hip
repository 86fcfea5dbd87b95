// GELU backward: one element a thread.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__device__ float derivative(float x, bool tanh_form) {
  if (tanh_form) {
    const float inner = 0.7978845608f * (x + 0.044715f * x * x * x);
    const float slope = 0.7978845608f * (1.0f + 0.134145f * x * x);
    const float t = tanhf(inner);
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope;
  }
  const float density = 0.3989422804f * expf(-0.5f * x * x);
  return 0.5f * (1.0f + erff(x * 0.7071067812f)) + x * density;
}

__global__ void gelu_backward_kernel(const float* grad, const float* x, bool tanh_form, float* dx,
                                     int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at < count) dx[at] = grad[at] * derivative(x[at], tanh_form);
}

extern "C" int gelu_backward(const float* grad, const float* x, int64_t tanh, float* dx, int64_t
                             rows, int64_t cols, hipStream_t stream) {
  const int64_t count = rows * cols;
  gelu_backward_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      grad, x, tanh != 0, dx, count);
  return hipGetLastError();
}
