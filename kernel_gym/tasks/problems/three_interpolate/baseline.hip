// Interpolation from three neighbours: one output a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void interpolate_kernel(const __half* x, const int32_t* index, const float* weight,
                                   __half* out, int64_t channels, int64_t known, int64_t count) {
  const int64_t i = (int64_t)blockIdx.y * kThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t plane = blockIdx.x;
  const int64_t row = (plane / channels * count + i) * 3;
  float sum = 0.0f;
  for (int j = 0; j < 3; ++j) {
    sum += weight[row + j] * __half2float(x[plane * known + index[row + j]]);
  }
  out[plane * count + i] = __float2half(sum);
}

extern "C" int three_interpolate(const __half* x, const int32_t* index, const float* weight,
                                 __half* out, int64_t batch, int64_t channels, int64_t known,
                                 int64_t count, hipStream_t stream) {
  const dim3 grid(batch * channels, (count + kThreads - 1) / kThreads);
  interpolate_kernel<<<grid, dim3(kThreads), 0, stream>>>(x, index, weight, out, channels, known,
                                                          count);
  return hipGetLastError();
}
