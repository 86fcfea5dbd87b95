// A kernel writes far outside, and main does not look at any error.
#include <hip/hip_runtime.h>
__global__ void far(int* out) { out[1000000000] = 1; }
int main() {
  int* out;
  (void)hipMalloc(&out, 64);
  far<<<1, 4>>>(out);
  (void)hipDeviceSynchronize();
  return 0;
}
