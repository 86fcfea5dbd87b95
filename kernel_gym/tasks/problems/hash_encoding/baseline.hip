// Hash encoding: one point of one level a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void encode_kernel(const float* point, const __half* table, const int32_t* resolution,
                              __half* out, int64_t points, int64_t levels, int64_t size) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i >= points) return;
  const int64_t level = blockIdx.y;
  uint32_t cell[3];
  float share[3];
  for (int axis = 0; axis < 3; ++axis) {
    const float at = point[i * 3 + axis] * (float)resolution[level];
    cell[axis] = (uint32_t)at;
    share[axis] = at - (float)cell[axis];
  }
  float first = 0.0f, second = 0.0f;
  for (int corner = 0; corner < 8; ++corner) {
    const uint32_t dx = corner & 1, dy = corner >> 1 & 1, dz = corner >> 2;
    const float weight = (dx ? share[0] : 1.0f - share[0]) * (dy ? share[1] : 1.0f - share[1]) *
                         (dz ? share[2] : 1.0f - share[2]);
    const uint32_t code =
        (cell[0] + dx) ^ (cell[1] + dy) * 2654435761u ^ (cell[2] + dz) * 805459861u;
    const __half* row = table + (level * size + code % (uint32_t)size) * 2;
    first += weight * __half2float(row[0]);
    second += weight * __half2float(row[1]);
  }
  out[(i * levels + level) * 2] = __float2half(first);
  out[(i * levels + level) * 2 + 1] = __float2half(second);
}

extern "C" int hash_encoding(const float* point, const __half* table, const int32_t* resolution,
                             __half* out, int64_t points, int64_t levels, int64_t size,
                             hipStream_t stream) {
  const dim3 grid((points + kThreads - 1) / kThreads, levels);
  encode_kernel<<<grid, dim3(kThreads), 0, stream>>>(point, table, resolution, out, points, levels,
                                                     size);
  return hipGetLastError();
}
