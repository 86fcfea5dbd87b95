// Image normalisation: one pixel of one plane a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void normalize_image_kernel(const uint8_t* x, const float* mean, const float* std,
                                       __half* out, int64_t pixels, int64_t channels) {
  const int64_t pixel = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (pixel >= pixels) return;
  const int64_t channel = blockIdx.y;
  const int64_t image = blockIdx.z;
  const float value = (float)x[(image * pixels + pixel) * channels + channel];
  out[(image * channels + channel) * pixels + pixel] =
      __float2half((value / 255.0f - mean[channel]) / std[channel]);
}

extern "C" int normalize_image(const uint8_t* x, const float* mean, const float* std, __half* out,
                               int64_t batch, int64_t pixels, int64_t channels,
                               hipStream_t stream) {
  const dim3 grid((pixels + kThreads - 1) / kThreads, channels, batch);
  normalize_image_kernel<<<grid, dim3(kThreads), 0, stream>>>(x, mean, std, out, pixels, channels);
  return hipGetLastError();
}
