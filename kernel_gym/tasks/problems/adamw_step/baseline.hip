// AdamW: one parameter a thread.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void adamw_kernel(const float* param, const float* grad, const float* m, const float* v,
                             float lr, float beta1, float beta2, float eps, float decay,
                             float correction1, float correction2, float* new_param, float* new_m,
                             float* new_v, int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= count) return;
  const float g = grad[at];
  const float mean = beta1 * m[at] + (1.0f - beta1) * g;
  const float square = beta2 * v[at] + (1.0f - beta2) * g * g;
  const float update = mean / correction1 / (sqrtf(square / correction2) + eps);
  new_m[at] = mean;
  new_v[at] = square;
  new_param[at] = param[at] - lr * decay * param[at] - lr * update;
}

static float one_minus_power(double base, int64_t exponent) {
  double power = 1.0;
  for (int64_t i = 0; i < exponent; ++i) power *= base;
  return (float)(1.0 - power);
}

extern "C" int adamw_step(const float* param, const float* grad, const float* m, const float* v,
                          float lr, float beta1, float beta2, float eps, float decay, int64_t step,
                          float* new_param, float* new_m, float* new_v, int64_t rows, int64_t cols,
                          hipStream_t stream) {
  const int64_t count = rows * cols;
  adamw_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      param, grad, m, v, lr, beta1, beta2, eps, decay, one_minus_power(beta1, step),
      one_minus_power(beta2, step), new_param, new_m, new_v, count);
  return hipGetLastError();
}
