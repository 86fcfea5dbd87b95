// 8-bit Adam: one block of 256 threads for each 256 parameters.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kGroup = 256;  // parameters that share a scale

__device__ float block_max(float value, float* scratch) {
  const int lane = threadIdx.x;
  __syncthreads();
  scratch[lane] = value;
  __syncthreads();
  for (int half = kGroup / 2; half > 0; half /= 2) {
    if (lane < half) scratch[lane] = fmaxf(scratch[lane], scratch[lane + half]);
    __syncthreads();
  }
  return fmaxf(scratch[0], 1e-30f);
}

__global__ void adam8bit_kernel(const float* param, const float* grad, const int8_t* m_code,
                                const float* m_scale, const uint8_t* v_code, const float* v_scale,
                                float lr, float beta1, float beta2, float eps, float decay,
                                float correction1, float correction2, float* new_param,
                                int8_t* new_m_code, float* new_m_scale, uint8_t* new_v_code,
                                float* new_v_scale) {
  __shared__ float scratch[kGroup];
  const int64_t at = (int64_t)blockIdx.x * kGroup + threadIdx.x;
  const float g = grad[at], p = param[at], root = v_code[at] / 255.0f;
  const float m = beta1 * (m_code[at] / 127.0f * m_scale[blockIdx.x]) + (1.0f - beta1) * g;
  const float v = beta2 * root * root * v_scale[blockIdx.x] + (1.0f - beta2) * g * g;
  const float update = m / correction1 / (sqrtf(v / correction2) + eps);
  new_param[at] = p - lr * (update + decay * p);
  const float m_top = block_max(fabsf(m), scratch), v_top = block_max(v, scratch);
  new_m_code[at] = (int8_t)rintf(127.0f * (m / m_top));
  new_v_code[at] = (uint8_t)rintf(255.0f * sqrtf(v / v_top));
  if (threadIdx.x == 0) {
    new_m_scale[blockIdx.x] = m_top;
    new_v_scale[blockIdx.x] = v_top;
  }
}

static float one_minus_power(double base, int64_t exponent) {
  double power = 1.0;
  for (int64_t i = 0; i < exponent; ++i) power *= base;
  return (float)(1.0 - power);
}

extern "C" int adam8bit_step(const float* param, const float* grad, const int8_t* m_code, const
                             float* m_scale, const uint8_t* v_code, const float* v_scale, float lr, float beta1, float beta2,
                             float eps, float decay, int64_t step, float* new_param, int8_t* new_m_code, float* new_m_scale,
                             uint8_t* new_v_code, float* new_v_scale, int64_t blocks, hipStream_t stream) {
  adam8bit_kernel<<<dim3(blocks), dim3(kGroup), 0, stream>>>(
      param, grad, m_code, m_scale, v_code, v_scale, lr, beta1, beta2, eps, decay,
      one_minus_power(beta1, step), one_minus_power(beta2, step), new_param, new_m_code,
      new_m_scale, new_v_code, new_v_scale);
  return hipGetLastError();
}
