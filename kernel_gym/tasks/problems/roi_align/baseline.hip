// RoIAlign: one output a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void roi_align_kernel(const __half* x, const float* box, float scale, int cells,
                                 int ratio, __half* out, int64_t total, int channels, int height,
                                 int width) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= total) return;
  const int col = (int)(at % cells), row = (int)(at / cells % cells);
  const int64_t plane = at / ((int64_t)cells * cells);
  const float* mine = box + plane / channels * 5;
  const float x1 = mine[1] * scale - 0.5f, y1 = mine[2] * scale - 0.5f;
  const float cell_width = (mine[3] - mine[1]) * scale / cells;
  const float cell_height = (mine[4] - mine[2]) * scale / cells;
  const __half* map = x + ((int64_t)mine[0] * channels + plane % channels) * height * width;
  float sum = 0.0f;
  for (int s = 0; s < ratio; ++s) {
    const float y = fminf(fmaxf(y1 + cell_height * (row + (s + 0.5f) / ratio), 0.0f), height - 1.0f);
    const int top = (int)y, bottom = min(top + 1, height - 1);
    const float down = y - top;
    for (int t = 0; t < ratio; ++t) {
      const float z = fminf(fmaxf(x1 + cell_width * (col + (t + 0.5f) / ratio), 0.0f), width - 1.0f);
      const int left = (int)z, far = min(left + 1, width - 1);
      const float right = z - left;
      const float upper = (1 - right) * __half2float(map[top * width + left]) + right * __half2float(map[top * width + far]);
      const float lower =
          (1 - right) * __half2float(map[bottom * width + left]) + right * __half2float(map[bottom * width + far]);
      sum += (1 - down) * upper + down * lower;
    }
  }
  out[at] = __float2half(sum / (ratio * ratio));
}

extern "C" int roi_align(const __half* x, const float* box, float scale, int64_t cells,
                         int64_t ratio, __half* out, int64_t batch, int64_t channels, int64_t height,
                         int64_t width, int64_t boxes, hipStream_t stream) {
  const int64_t total = boxes * channels * cells * cells;
  roi_align_kernel<<<dim3((total + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      x, box, scale, (int)cells, (int)ratio, out, total, (int)channels, (int)height, (int)width);
  return hipGetLastError();
}
