// Nearest neighbours: one thread a query; it reads the points once and keeps the nearest in order.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;
constexpr int kMost = 64;

__global__ void knn_kernel(const float* queries, const float* points, int64_t count,
                           float* distance, int32_t* index, int64_t query_count, int64_t size) {
  const int64_t query = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int64_t batch = blockIdx.y;
  if (query >= query_count) return;
  const int64_t row = batch * query_count + query;
  const float x = queries[row * 3], y = queries[row * 3 + 1], z = queries[row * 3 + 2];
  float near[kMost];
  int32_t near_at[kMost];
  for (int n = 0; n < (int)count; ++n) near[n] = INFINITY;
  for (int64_t i = 0; i < size; ++i) {
    const float* point = points + (batch * size + i) * 3;
    const float dx = point[0] - x, dy = point[1] - y, dz = point[2] - z;
    const float d = dx * dx + dy * dy + dz * dz;
    if (d >= near[count - 1]) continue;
    int n = (int)count - 1;
    for (; n > 0 && near[n - 1] > d; --n) {
      near[n] = near[n - 1];
      near_at[n] = near_at[n - 1];
    }
    near[n] = d;
    near_at[n] = (int32_t)i;
  }
  for (int n = 0; n < (int)count; ++n) {
    distance[row * count + n] = near[n];
    index[row * count + n] = near_at[n];
  }
}

extern "C" int knn(const float* queries, const float* points, int64_t count, float* distance,
                   int32_t* index, int64_t batch, int64_t query_count, int64_t size,
                   hipStream_t stream) {
  const dim3 grid((query_count + kThreads - 1) / kThreads, batch);
  knn_kernel<<<grid, dim3(kThreads), 0, stream>>>(queries, points, count, distance, index,
                                                  query_count, size);
  return hipGetLastError();
}
