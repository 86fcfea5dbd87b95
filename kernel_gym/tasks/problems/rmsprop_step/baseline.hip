// RMSprop: one parameter a thread.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void rmsprop_kernel(const float* param, const float* grad, const float* square,
                               const float* buffer, float lr, float alpha, float eps,
                               float momentum, float* new_param, float* new_square,
                               float* new_buffer, int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= count) return;
  const float g = grad[at];
  const float s = alpha * square[at] + (1.0f - alpha) * g * g;
  const float b = momentum * buffer[at] + g / sqrtf(s + eps);
  new_param[at] = param[at] - lr * b;
  new_square[at] = s;
  new_buffer[at] = b;
}

extern "C" int rmsprop_step(const float* param, const float* grad, const float* square,
                            const float* buffer, float lr, float alpha, float eps, float momentum,
                            float* new_param, float* new_square, float* new_buffer, int64_t rows,
                            int64_t cols, hipStream_t stream) {
  const int64_t count = rows * cols;
  rmsprop_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      param, grad, square, buffer, lr, alpha, eps, momentum, new_param, new_square, new_buffer,
      count);
  return hipGetLastError();
}
