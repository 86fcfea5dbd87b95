// Heat diffusion: one thread a grid point, blocks of 16 x 16 points, neighbours from global memory.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kSide = 16;

__global__ void heat_stencil_kernel(const float* t, const float* power, float* out, float rate,
                                    int64_t height, int64_t width) {
  const int64_t col = (int64_t)blockIdx.x * kSide + threadIdx.x;
  const int64_t row = (int64_t)blockIdx.y * kSide + threadIdx.y;
  if (row >= height || col >= width) return;
  const int64_t base = (int64_t)blockIdx.z * height * width;
  const float* grid = t + base;
  const float here = grid[row * width + col];
  const float north = grid[(row > 0 ? row - 1 : row) * width + col];
  const float south = grid[(row + 1 < height ? row + 1 : row) * width + col];
  const float west = grid[row * width + (col > 0 ? col - 1 : col)];
  const float east = grid[row * width + (col + 1 < width ? col + 1 : col)];
  out[base + row * width + col] =
      here + rate * (north + south + west + east - 4.0f * here) + power[base + row * width + col];
}

extern "C" int heat_stencil(const float* t, const float* power, float rate, float* out,
                            int64_t batch, int64_t height, int64_t width, hipStream_t stream) {
  const dim3 grid((width + kSide - 1) / kSide, (height + kSide - 1) / kSide, batch);
  heat_stencil_kernel<<<grid, dim3(kSide, kSide), 0, stream>>>(t, power, out, rate, height, width);
  return hipGetLastError();
}
