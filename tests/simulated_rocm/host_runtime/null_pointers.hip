// Null pointers and sizes that no memory has: an error of HIP, never a crash.
#include "check.h"

#define INVALID(call) CHECK((call) == hipErrorInvalidValue)

__device__ int table[4];
__global__ void work(float* x) { x[threadIdx.x] += table[0]; }

int memory(float* x) {
  size_t size;
  void* pointer;
  float host[64] = {};
  const size_t most = ~size_t{0};
  INVALID(hipMallocPitch(nullptr, &size, 64, 2));
  INVALID(hipMallocPitch(&pointer, nullptr, 64, 2));
  CHECK(hipMallocPitch(&pointer, &size, 1 << 20, most >> 8) == hipErrorOutOfMemory);
  INVALID(hipMalloc3D(nullptr, make_hipExtent(64, 2, 2)));
  INVALID(hipMemGetAddressRange(&pointer, &size, nullptr));
  CHECK(hipMemGetAddressRange(&pointer, &size, reinterpret_cast<void*>(most)) != hipSuccess);
  INVALID(hipHostGetDevicePointer(nullptr, host, 0));
  INVALID(hipHostRegister(nullptr, 4096, 0));
  INVALID(hipMemcpy(nullptr, host, sizeof host, hipMemcpyHostToDevice));
  INVALID(hipMemcpy(x, nullptr, sizeof host, hipMemcpyHostToDevice));
  CHECK(hipMemcpy(x, host, most - 64, hipMemcpyHostToDevice) != hipSuccess);
  CHECK(hipMemcpy(x, host, sizeof host, static_cast<hipMemcpyKind>(9)) ==
        hipErrorInvalidMemcpyDirection);
  OK(hipMemcpy(x, host, sizeof host, hipMemcpyHostToHost));  // the addresses say what it is
  INVALID(hipMemset(nullptr, 0, 64));
  CHECK(hipMemset(x, 0, most - 64) != hipSuccess);
  INVALID(hipMemcpy3D(nullptr));
  hipMemcpy3DParms copy = {};
  copy.extent = make_hipExtent(4, 4, 4);
  INVALID(hipMemcpy3D(&copy));
  return 0;
}
int symbols() {
  size_t size;
  int value = 1;
  INVALID(hipGetSymbolAddress(nullptr, HIP_SYMBOL(table)));
  INVALID(hipGetSymbolSize(nullptr, HIP_SYMBOL(table)));
  CHECK(hipGetSymbolSize(&size, nullptr) == hipErrorInvalidSymbol);
  CHECK(hipMemcpyToSymbol(nullptr, &value, 4) == hipErrorInvalidSymbol);
  INVALID(hipMemcpyToSymbol(HIP_SYMBOL(table), &value, 4, ~size_t{0} - 1));
  return 0;
}
int modules() {
  hipModule_t module;
  hipFunction_t function;
  INVALID(hipModuleLoadData(nullptr, "text"));
  INVALID(hipModuleLoadData(&module, nullptr));
  INVALID(hipModuleLoad(&module, nullptr));
  CHECK(hipModuleLoad(&module, "/no/such/file") == hipErrorFileNotFound);
  INVALID(hipModuleGetFunction(nullptr, module, "work"));
  INVALID(hipModuleGetFunction(&function, module, nullptr));
  INVALID(hipModuleGetGlobal(nullptr, nullptr, module, "table"));
  return 0;
}
int queries() {
  int number;
  char text[8];
  const auto kernel = reinterpret_cast<const void*>(work);
  INVALID(hipDeviceGet(nullptr, 0));
  INVALID(hipDeviceGetName(nullptr, 8, 0));
  INVALID(hipDeviceGetName(text, -1, 0));
  OK(hipDeviceGetName(text, sizeof text, 0));
  CHECK(strlen(text) == sizeof text - 1);
  INVALID(hipDeviceTotalMem(nullptr, 0));
  INVALID(hipDeviceCanAccessPeer(nullptr, 0, 0));
  INVALID(hipDeviceGetPCIBusId(nullptr, 16, 0));
  INVALID(hipOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, kernel, 64, 0));
  INVALID(hipOccupancyMaxPotentialBlockSize(&number, nullptr, kernel, 0, 0));
  INVALID(hipEventElapsedTime(nullptr, nullptr, nullptr));
  INVALID(hipStreamGetFlags(nullptr, nullptr));
  INVALID(hipStreamAddCallback(nullptr, nullptr, nullptr, 0));
  INVALID(hipEventCreate(nullptr));
  INVALID(hipStreamCreate(nullptr));
  INVALID(hipMallocManaged(static_cast<void**>(nullptr), 4));
  return 0;
}

int main() {
  float* x;
  OK(hipMalloc(&x, 256));
  for (int line : {memory(x), symbols(), modules(), queries()}) {
    if (line) return line;
  }
  OK(hipFree(x));
  CHECK(hipFree(x) != hipSuccess);  // freed already
  const auto kernel = reinterpret_cast<const void*>(work);
  void* nothing[] = {nullptr};
  CHECK(hipLaunchKernel(kernel, 0, 64, nothing, 0, nullptr) == hipErrorInvalidConfiguration);
  CHECK(hipLaunchKernel(kernel, 1, 0, nothing, 0, nullptr) == hipErrorInvalidConfiguration);
  CHECK(hipLaunchKernel(kernel, 1, 64, nullptr, 0, nullptr) != hipSuccess);
  CHECK(hipLaunchKernel(kernel, 1, 64, nothing, 0, nullptr) != hipSuccess);
  return 0;
}
