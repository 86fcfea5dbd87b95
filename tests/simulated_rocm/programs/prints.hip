#include <hip/hip_runtime.h>

#include <cstdio>
__device__ const char* const kWords[2] = {"even", "a word of more than eight characters"};
__global__ void say(float x) {
  printf("%d %s %5.2f %c %x %ld%%\n", threadIdx.x, kWords[threadIdx.x & 1], x * threadIdx.x,
         'A' + static_cast<int>(threadIdx.x), 255u, 1234567890123L);
}
int main() {
  printf("before\n");
  say<<<2, 2>>>(1.5f);
  const int status = hipDeviceSynchronize();
  printf("after\n");
  return status;
}
