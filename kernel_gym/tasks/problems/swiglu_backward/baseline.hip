// SwiGLU backward: one element of grad a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void swiglu_backward_kernel(const __half* grad, const __half* x,
                                       __half* dx, int64_t rows, int64_t cols) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= rows * cols) return;
  const int64_t gate_at = at / cols * 2 * cols + at % cols;
  const float g = __half2float(grad[at]);
  const float gate = __half2float(x[gate_at]);
  const float up = __half2float(x[gate_at + cols]);
  const float s = 1.0f / (1.0f + expf(-gate));
  dx[gate_at] = __float2half(g * up * s * (1.0f + gate * (1.0f - s)));
  dx[gate_at + cols] = __float2half(g * gate * s);
}

extern "C" int swiglu_backward(const __half* grad, const __half* x, __half* dx, int64_t rows,
                               int64_t cols, hipStream_t stream) {
  const int64_t blocks = (rows * cols + kThreads - 1) / kThreads;
  swiglu_backward_kernel<<<dim3(blocks), dim3(kThreads), 0, stream>>>(grad, x, dx, rows, cols);
  return hipGetLastError();
}
