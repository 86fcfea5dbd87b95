// Memory that host and kernels share, and the rarer calls.
#include "../host_runtime/check.h"
__managed__ int managed = 5;
__device__ float variable;
__device__ char bytes[3] = {1, 2, 3};
__global__ void add(int* x, int n) {
  if (threadIdx.x < 16) x[threadIdx.x] += n;
  if (threadIdx.x == 0) managed += 1;
}
int main() {
  int concurrent = 0;
  hipDeviceProp_t properties;
  OK(hipGetDeviceProperties(&properties, 0));
  OK(hipDeviceGetAttribute(&concurrent, hipDeviceAttributeConcurrentManagedAccess, 0));
  int atomics = 0;
  OK(hipDeviceGetAttribute(&atomics, hipDeviceAttributeHostNativeAtomicSupported, 0));
  CHECK(atomics == 1 && properties.canMapHostMemory == 1);
  CHECK(properties.managedMemory == 1 && properties.concurrentManagedAccess == 1 && concurrent);
  int *pinned, *unified, *alias, registered[16] = {};
  OK(hipHostMalloc(&pinned, 64, hipHostMallocDefault));
  OK(hipMallocManaged(&unified, 64));
  OK(hipHostRegister(registered, sizeof registered, hipHostRegisterDefault));
  OK(hipHostGetDevicePointer(reinterpret_cast<void**>(&alias), registered, 0));
  for (int i = 0; i < 16; i++) pinned[i] = unified[i] = registered[i] = i;
  add<<<1, 16>>>(pinned, 1);
  add<<<1, 16>>>(unified, 2);
  add<<<1, 16>>>(alias, 3);
  OK(hipDeviceSynchronize());
  for (int i = 0; i < 16; i++) {
    CHECK(pinned[i] == i + 1 && unified[i] == i + 2 && registered[i] == i + 3);
  }
  CHECK(managed == 8);
  OK(hipHostUnregister(registered));
  CHECK(registered[15] == 18);

  size_t size = 0;
  OK(hipGetSymbolSize(&size, HIP_SYMBOL(variable)));
  CHECK(size == sizeof(float));
  OK(hipGetSymbolSize(&size, HIP_SYMBOL(bytes)));
  CHECK(size == 3);

  hipPitchedPtr box;
  OK(hipMalloc3D(&box, make_hipExtent(40, 3, 2)));
  OK(hipMemset3D(box, 7, make_hipExtent(40, 3, 2)));
  char plane[3][40];
  OK(hipMemcpy2DAsync(plane, 40, box.ptr, box.pitch, 40, 3, hipMemcpyDeviceToHost, nullptr));
  CHECK(plane[0][0] == 7 && plane[2][39] == 7);
  int can = 1;
  OK(hipDeviceCanAccessPeer(&can, 0, 0));
  CHECK(can == 0);
  CHECK(hipFree(reinterpret_cast<void*>(64)) == hipErrorInvalidValue);
  CHECK(hipMemcpy(plane, box.ptr, 1 << 20, hipMemcpyDeviceToHost) == hipErrorInvalidValue);
  hipArray* array;
  const hipChannelFormatDesc bytes = hipCreateChannelDesc(8, 0, 0, 0, hipChannelFormatKindSigned);
  CHECK(hipMallocArray(&array, &bytes, 4, 4, 0) == hipErrorNotSupported);
  add<<<1, 2048>>>(unified, 1);
  CHECK(hipGetLastError() == hipErrorInvalidConfiguration);
  CHECK(hipLaunchKernel(reinterpret_cast<void*>(add), 1, 16, nullptr, 0, 0) ==
        hipErrorInvalidValue);
  OK(hipHostFree(pinned));
  OK(hipFree(unified));
  return 0;
}
