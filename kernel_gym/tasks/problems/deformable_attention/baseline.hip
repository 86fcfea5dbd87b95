// Deformable attention: one block of 32 threads a head of one query, a thread a channel.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kWidth = 32;
constexpr int kLevels = 4;

__device__ float pixel(const __half* level, int64_t row, int64_t col, int64_t rows, int64_t cols,
                       int64_t stride) {
  if (row < 0 || row >= rows || col < 0 || col >= cols) return 0.0f;
  return __half2float(level[(row * cols + col) * stride]);
}

__global__ void deformable_kernel(const __half* value, const float* place, const float* weight,
                                  __half* out, int64_t positions, int64_t points, int64_t height,
                                  int64_t width) {
  const int64_t heads = gridDim.x, queries = gridDim.y;
  const int64_t head = blockIdx.x, query = blockIdx.y, batch = blockIdx.z;
  const int64_t stride = heads * kWidth;
  const __half* level = value + batch * positions * stride + head * kWidth + threadIdx.x;
  const int64_t at = (batch * queries + query) * heads + head;
  const float* my_place = place + at * kLevels * points * 2;
  const float* my_weight = weight + at * kLevels * points;

  float total = 0.0f;
  for (int i = 0; i < kLevels; ++i) {
    const int64_t rows = (height + (1 << i) - 1) >> i;
    const int64_t cols = (width + (1 << i) - 1) >> i;
    for (int64_t p = 0; p < points; ++p) {
      const float x = my_place[(i * points + p) * 2] * (float)cols - 0.5f;
      const float y = my_place[(i * points + p) * 2 + 1] * (float)rows - 0.5f;
      const float left = floorf(x), above = floorf(y);
      const float right_share = x - left, below_share = y - above;
      const int64_t r = (int64_t)above, c = (int64_t)left;
      const float upper = pixel(level, r, c, rows, cols, stride) * (1.0f - right_share) +
                          pixel(level, r, c + 1, rows, cols, stride) * right_share;
      const float lower = pixel(level, r + 1, c, rows, cols, stride) * (1.0f - right_share) +
                          pixel(level, r + 1, c + 1, rows, cols, stride) * right_share;
      const float sample = upper * (1.0f - below_share) + lower * below_share;
      total += sample * my_weight[i * points + p];
    }
    level += rows * cols * stride;
  }
  out[at * kWidth + threadIdx.x] = __float2half(total);
}

extern "C" int deformable_attention(const __half* value, const float* place, const float* weight,
                                    int64_t height, int64_t width, __half* out, int64_t batch,
                                    int64_t queries, int64_t heads, int64_t points,
                                    hipStream_t stream) {
  int64_t positions = 0;
  for (int i = 0; i < kLevels; ++i) {
    positions += ((height + (1 << i) - 1) >> i) * ((width + (1 << i) - 1) >> i);
  }
  deformable_kernel<<<dim3(heads, queries, batch), dim3(kWidth), 0, stream>>>(
      value, place, weight, out, positions, points, height, width);
  return hipGetLastError();
}
