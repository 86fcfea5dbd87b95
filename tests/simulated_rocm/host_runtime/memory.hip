#include "check.h"

__global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2.f;
}
int main() {
  const int n = 1000;
  float *host, *device, *other;
  OK(hipHostMalloc((void**)&host, n * sizeof(float), 0));
  OK(hipMalloc(&device, n * sizeof(float)));
  OK(hipMallocAsync((void**)&other, n * sizeof(float), 0));
  for (int i = 0; i < n; i++) host[i] = i;
  OK(hipMemcpy(device, host, n * sizeof(float), hipMemcpyHostToDevice));
  twice<<<(n + 255) / 256, 256>>>(device, n);
  OK(hipGetLastError());
  OK(hipMemcpyAsync(other, device, n * sizeof(float), hipMemcpyDeviceToDevice, 0));
  OK(hipMemcpy(host, other, n * sizeof(float), hipMemcpyDefault));
  for (int i = 0; i < n; i++) CHECK(host[i] == 2.f * i);
  OK(hipMemset(device, 0, n * sizeof(float)));
  OK(hipMemsetD32((hipDeviceptr_t)other, 0xbf800000, n));
  OK(hipMemcpy(host, device, n * sizeof(float), hipMemcpyDeviceToHost));
  CHECK(host[0] == 0.f && host[n - 1] == 0.f);
  OK(hipMemcpyDtoH(host, (hipDeviceptr_t)other, n * sizeof(float)));
  CHECK(host[0] == -1.f && host[n - 1] == -1.f);
  OK(hipFree(device));
  OK(hipFreeAsync(other, 0));
  OK(hipHostFree(host));
  CHECK(hipFree(device) != hipSuccess);
  return 0;
}
