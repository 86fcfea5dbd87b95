#include "check.h"

__constant__ float table[4] = {1.f, 2.f, 3.f, 4.f};
__device__ int counter = 5;
__global__ void look(float* out) {
  out[threadIdx.x] = table[threadIdx.x & 3];
  if (threadIdx.x == 0) atomicAdd(&counter, 1);
}
__global__ void count() { atomicAdd(&counter, 10); }
int main() {
  float host[64], *out;
  OK(hipMalloc(&out, sizeof host));
  look<<<1, 64>>>(out);
  OK(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
  CHECK(host[0] == 1.f && host[7] == 4.f);
  const float other[2] = {8.f, 9.f};
  OK(hipMemcpyToSymbol(HIP_SYMBOL(table), other, sizeof other, sizeof(float)));
  look<<<1, 64>>>(out);
  OK(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
  CHECK(host[0] == 1.f && host[1] == 8.f && host[2] == 9.f && host[3] == 4.f);
  count<<<3, 1>>>();
  int value = 0;
  OK(hipMemcpyFromSymbol(&value, HIP_SYMBOL(counter), sizeof value));
  CHECK(value == 5 + 2 + 30);
  void* address = nullptr;
  size_t size = 0;
  OK(hipGetSymbolAddress(&address, HIP_SYMBOL(table)));
  OK(hipGetSymbolSize(&size, HIP_SYMBOL(table)));
  CHECK(address && size == 16);
  CHECK(hipMemcpyToSymbol(HIP_SYMBOL(table), other, 8, 12) == hipErrorInvalidValue);
  return 0;
}
