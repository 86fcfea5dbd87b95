#include <hip/hip_runtime.h>

#include <cassert>
__global__ void check(int n) { assert(static_cast<int>(threadIdx.x) < n); }
int main(int count, char**) {
  check<<<1, 4>>>(4);
  if (hipDeviceSynchronize()) return 1;
  if (count > 1) check<<<1, 4>>>(2);
  return hipDeviceSynchronize() && count == 1;
}
