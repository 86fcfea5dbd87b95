// Spherical harmonics: one vector a thread.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void harmonics_kernel(const float* vector, float eps, float* out, int64_t edges) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= edges) return;
  float x = vector[3 * at], y = vector[3 * at + 1], z = vector[3 * at + 2];
  const float factor = 1.0f / (sqrtf(x * x + y * y + z * z) + eps);
  x *= factor;
  y *= factor;
  z *= factor;
  const float r3 = 1.7320508076f, r5 = 2.2360679775f, r15 = 3.8729833462f;
  float* mine = out + 9 * at;
  mine[0] = 1.0f;
  mine[1] = r3 * x;
  mine[2] = r3 * y;
  mine[3] = r3 * z;
  mine[4] = r15 * x * z;
  mine[5] = r15 * x * y;
  mine[6] = r5 * (y * y - 0.5f * (x * x + z * z));
  mine[7] = r15 * y * z;
  mine[8] = 0.5f * r15 * (z * z - x * x);
}

extern "C" int spherical_harmonics(const float* vector, float eps, float* out, int64_t edges,
                                   hipStream_t stream) {
  harmonics_kernel<<<dim3((edges + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      vector, eps, out, edges);
  return hipGetLastError();
}
