// Ball query: one thread a centre walks the points in order until it has enough.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void ball_query_kernel(const float* points, const float* centres, float radius,
                                  int64_t count, int32_t* index, int64_t size,
                                  int64_t centre_count) {
  const int64_t centre = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int64_t batch = blockIdx.y;
  if (centre >= centre_count) return;
  const float* middle = centres + (batch * centre_count + centre) * 3;
  int32_t* out = index + (batch * centre_count + centre) * count;
  int64_t found = 0;
  int32_t first = 0;
  for (int64_t i = 0; i < size && found < count; ++i) {
    const float* point = points + (batch * size + i) * 3;
    const float dx = point[0] - middle[0];
    const float dy = point[1] - middle[1];
    const float dz = point[2] - middle[2];
    if (dx * dx + dy * dy + dz * dz < radius * radius) {
      if (found == 0) first = (int32_t)i;
      out[found++] = (int32_t)i;
    }
  }
  for (; found < count; ++found) out[found] = first;
}

extern "C" int ball_query(const float* points, const float* centres, float radius, int64_t count,
                          int32_t* index, int64_t batch, int64_t size, int64_t centre_count,
                          hipStream_t stream) {
  const dim3 grid((centre_count + kThreads - 1) / kThreads, batch);
  ball_query_kernel<<<grid, dim3(kThreads), 0, stream>>>(points, centres, radius, count, index,
                                                         size, centre_count);
  return hipGetLastError();
}
