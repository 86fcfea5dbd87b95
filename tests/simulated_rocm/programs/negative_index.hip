// The compiler folds a positive part of the index into the offset of a negative LDS address.
#include "../host_runtime/check.h"
__global__ void shifted(int* out, int back) {
  __shared__ int values[1032];
  for (int i = threadIdx.x; i < 1032; i += 64) values[i] = i;
  __syncthreads();
  const int j = static_cast<int>(threadIdx.x) - back;
  out[threadIdx.x] = values[j + 515];
}
int main() {
  int *out, host[64];
  OK(hipMalloc(&out, sizeof host));
  shifted<<<1, 64>>>(out, 40);
  OK(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; i++) CHECK(host[i] == i - 40 + 515);
  shifted<<<1, 64>>>(out, 600);  // still negative after the offset
  CHECK(hipDeviceSynchronize() == hipErrorLaunchFailure);
  return 7;
}
