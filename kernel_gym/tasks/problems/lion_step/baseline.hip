// Lion: one parameter a thread.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 128;

__global__ void lion_kernel(const float* param, const float* grad, const float* m, float lr,
                            float beta1, float beta2, float decay, float* new_param, float* new_m,
                            int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= count) return;
  const float ahead = beta1 * m[at] + (1.0f - beta1) * grad[at];
  const float sign = (float)((ahead > 0.0f) - (ahead < 0.0f));
  new_param[at] = param[at] * (1.0f - lr * decay) - lr * sign;
  new_m[at] = beta2 * m[at] + (1.0f - beta2) * grad[at];
}

extern "C" int lion_step(const float* param, const float* grad, const float* m, float lr,
                         float beta1, float beta2, float decay, float* new_param, float* new_m,
                         int64_t rows, int64_t cols, hipStream_t stream) {
  const int64_t count = rows * cols;
  lion_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      param, grad, m, lr, beta1, beta2, decay, new_param, new_m, count);
  return hipGetLastError();
}
