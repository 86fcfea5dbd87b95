// Nearest neighbours: one thread a query; it looks for the next nearest until it has enough.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void knn_kernel(const float* queries, const float* points, int64_t count,
                           float* distance, int32_t* index, int64_t query_count, int64_t size) {
  const int64_t query = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int64_t batch = blockIdx.y;
  if (query >= query_count) return;
  const int64_t row = batch * query_count + query;
  const float x = queries[row * 3], y = queries[row * 3 + 1], z = queries[row * 3 + 2];
  float last = -1.0f;
  int64_t last_at = -1;
  for (int64_t n = 0; n < count; ++n) {
    float best = INFINITY;
    int64_t best_at = -1;
    for (int64_t i = 0; i < size; ++i) {
      const float* point = points + (batch * size + i) * 3;
      const float dx = point[0] - x, dy = point[1] - y, dz = point[2] - z;
      const float d = dx * dx + dy * dy + dz * dz;
      if ((d > last || (d == last && i > last_at)) && d < best) {
        best = d;
        best_at = i;
      }
    }
    distance[row * count + n] = best;
    index[row * count + n] = (int32_t)best_at;
    last = best;
    last_at = best_at;
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
