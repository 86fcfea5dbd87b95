#include "check.h"
#include <hip/hip_cooperative_groups.h>

namespace groups = cooperative_groups;

__global__ void exchange(const int* x, int* middle, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  middle[i] = 2 * x[i];
  groups::this_grid().sync();
  out[i] = middle[n - 1 - i];
}
int main() {
  int host[1024], *x, *middle, *out, n = 1024;
  for (int i = 0; i < n; i++) host[i] = i;
  OK(hipMalloc(&x, sizeof host));
  OK(hipMalloc(&middle, sizeof host));
  OK(hipMalloc(&out, sizeof host));
  OK(hipMemcpy(x, host, sizeof host, hipMemcpyHostToDevice));
  void* args[] = {&x, &middle, &out, &n};
  OK(hipLaunchCooperativeKernel((const void*)exchange, dim3(8), dim3(128), args, 0, 0));
  OK(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) CHECK(host[i] == 2 * (n - 1 - i));
  return 0;
}
