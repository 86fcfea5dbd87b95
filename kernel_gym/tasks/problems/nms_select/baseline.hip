// Greedy selection: one block of 256 threads an image, its marks in shared memory; every box in
// turn strikes out later ones.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;
constexpr int kMaxBoxes = 4096;

__global__ void nms_kernel(const float* boxes, float threshold, int32_t* keep, int64_t count) {
  __shared__ int alive[kMaxBoxes];
  const float* image = boxes + (int64_t)blockIdx.x * count * 4;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) alive[i] = 1;
  __syncthreads();
  for (int64_t i = 0; i < count; ++i) {
    if (alive[i]) {
      const float* own = image + i * 4;
      const float own_area = (own[2] - own[0]) * (own[3] - own[1]);
      for (int64_t j = i + 1 + threadIdx.x; j < count; j += kThreads) {
        const float* other = image + j * 4;
        const float wide = fmaxf(fminf(other[2], own[2]) - fmaxf(other[0], own[0]), 0.0f);
        const float high = fmaxf(fminf(other[3], own[3]) - fmaxf(other[1], own[1]), 0.0f);
        const float shared = wide * high;
        const float area = (other[2] - other[0]) * (other[3] - other[1]);
        if (shared > threshold * (area + own_area - shared)) alive[j] = 0;
      }
    }
    __syncthreads();
  }
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    keep[(int64_t)blockIdx.x * count + i] = alive[i];
  }
}

extern "C" int nms_select(const float* boxes, float threshold, int32_t* keep, int64_t batch,
                          int64_t count, hipStream_t stream) {
  nms_kernel<<<dim3(batch), dim3(kThreads), 0, stream>>>(boxes, threshold, keep, count);
  return hipGetLastError();
}
