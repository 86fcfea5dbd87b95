// Furthest point sampling: one block a cloud, least distances in shared memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;
constexpr int kMost = 12288;

__global__ void sampling_kernel(const float* points, int64_t count, int32_t* index, int64_t size) {
  __shared__ float near[kMost];
  __shared__ float top[kThreads];
  __shared__ int place[kThreads];
  const int lane = threadIdx.x;
  const float* cloud = points + (int64_t)blockIdx.x * size * 3;
  int32_t* out = index + (int64_t)blockIdx.x * count;
  for (int i = lane; i < size; i += kThreads) near[i] = INFINITY;
  int last = 0;
  for (int64_t step = 0; step < count; ++step) {
    if (lane == 0) out[step] = last;
    const float x = cloud[last * 3], y = cloud[last * 3 + 1], z = cloud[last * 3 + 2];
    float best = -1.0f;
    int best_at = 0;
    for (int i = lane; i < size; i += kThreads) {
      const float dx = cloud[i * 3] - x, dy = cloud[i * 3 + 1] - y, dz = cloud[i * 3 + 2] - z;
      const float apart = fminf(near[i], dx * dx + dy * dy + dz * dz);
      near[i] = apart;
      if (apart > best) {
        best = apart;
        best_at = i;
      }
    }
    top[lane] = best;
    place[lane] = best_at;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
      if (lane < half) {
        const float other = top[lane + half];
        const int other_at = place[lane + half];
        if (other > top[lane] || (other == top[lane] && other_at < place[lane])) {
          top[lane] = other;
          place[lane] = other_at;
        }
      }
      __syncthreads();
    }
    last = place[0];
    __syncthreads();
  }
}

extern "C" int furthest_point_sampling(const float* points, int64_t count, int32_t* index,
                                       int64_t batch, int64_t size, hipStream_t stream) {
  sampling_kernel<<<dim3(batch), dim3(kThreads), 0, stream>>>(points, count, index, size);
  return hipGetLastError();
}
