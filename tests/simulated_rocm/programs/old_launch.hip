// A launch in three steps, with arguments that the program lays out itself.
#include "../host_runtime/check.h"

__global__ void add(int* x, int n) {
  extern __shared__ int one[];
  one[threadIdx.x] = n;
  x[blockIdx.x * blockDim.x + threadIdx.x] += one[threadIdx.x];
}
__global__ void nothing() {}

int main() {
  int *x, host[128], n = 7;
  OK(hipMalloc(&x, sizeof host));
  OK(hipMemset(x, 0, sizeof host));
  const auto kernel = reinterpret_cast<const void*>(add);
  CHECK(hipLaunchByPtr(kernel) == hipErrorMissingConfiguration);
  for (int launch = 0; launch < 2; launch++) {
    OK(hipConfigureCall(dim3(2), dim3(64), 64 * sizeof(int), nullptr));
    OK(hipSetupArgument(&n, sizeof n, 8));  // in any order
    OK(hipSetupArgument(&x, sizeof x, 0));
    OK(hipLaunchByPtr(kernel));
  }
  CHECK(hipLaunchByPtr(kernel) == hipErrorMissingConfiguration);
  OK(hipMemcpy(host, x, sizeof host, hipMemcpyDeviceToHost));
  for (int value : host) CHECK(value == 14);

  OK(hipConfigureCall(dim3(1), dim3(64), 0, nullptr));
  CHECK(hipSetupArgument(nullptr, 4, 0) == hipErrorInvalidValue);
  OK(hipLaunchByPtr(reinterpret_cast<const void*>(nothing)));
  OK(hipConfigureCall(dim3(1), dim3(64), 0, nullptr));
  CHECK(hipLaunchByPtr(host) == hipErrorInvalidDeviceFunction);
  return 0;
}
