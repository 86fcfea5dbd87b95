#include <hip/hip_runtime.h>

#include <cstdlib>
__global__ void one(int* out) { out[threadIdx.x] = 1; }
int main() {
  int* out;
  (void)hipMalloc(&out, 64);
  one<<<1, 4>>>(out);
  if (hipDeviceSynchronize()) exit(4);
  exit(0);
}
