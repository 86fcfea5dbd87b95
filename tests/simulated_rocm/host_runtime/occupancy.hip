#include "check.h"

__global__ void plain(float* x) { x[threadIdx.x] = 1.f; }
__global__ void greedy(float* x) {
  __shared__ float tile[8192];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[(threadIdx.x + 1) % blockDim.x];
}
int main() {
  int blocks = 0, grid = 0, block = 0;
  OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 256, 0));
  CHECK(blocks == 8);
  OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, greedy, 256, 0));
  CHECK(blocks == 2);
  OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, greedy, 256, 40000));
  CHECK(blocks == 0);
  OK(hipOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 0));
  CHECK(block == 1024 && grid == 2 * 304);
  OK(hipOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 128));
  CHECK(block <= 128 && grid % 304 == 0);
  hipFuncAttributes attributes;
  OK(hipFuncGetAttributes(&attributes, (const void*)greedy));
  CHECK(attributes.sharedSizeBytes == 32768 && attributes.numRegs > 0);
  return 0;
}
