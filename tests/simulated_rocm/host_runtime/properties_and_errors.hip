#include "check.h"

int main() {
  int count = 0, device = -1, value = 0;
  OK(hipGetDeviceCount(&count));
  OK(hipGetDevice(&device));
  CHECK(count == 1 && device == 0);
  hipDeviceProp_t properties;
  memset(&properties, 0xff, sizeof properties);
  OK(hipGetDeviceProperties(&properties, 0));
  CHECK(strstr(properties.name, "MI300X"));
  CHECK(strncmp(properties.gcnArchName, "gfx942", 6) == 0);
  CHECK(properties.multiProcessorCount == 304 && properties.warpSize == 64);
  CHECK(properties.sharedMemPerBlock == 65536 && properties.maxThreadsPerBlock == 1024);
  CHECK(properties.totalGlobalMem >> 30 == 192 && properties.cooperativeLaunch == 1);
  CHECK(properties.pageableMemoryAccessUsesHostPageTables == 0);  // the last one is filled in
  CHECK(properties.managedMemory == 0 && properties.memPitch == 2147483647);  // as in a worker
  OK(hipDeviceGetAttribute(&value, hipDeviceAttributeManagedMemory, 0));
  CHECK(value == 0);
  OK(hipDeviceGetAttribute(&value, hipDeviceAttributeMultiprocessorCount, 0));
  CHECK(value == 304);
  OK(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0));
  CHECK(value == 64);
  OK(hipDeviceGetAttribute(&value, hipDeviceAttributeMaxSharedMemoryPerBlock, 0));
  CHECK(value == 65536);
  CHECK(hipGetDeviceCount(nullptr) == hipErrorInvalidValue);
  CHECK(hipGetDeviceProperties(nullptr, 0) == hipErrorInvalidValue);
  CHECK(hipDeviceGetAttribute(nullptr, hipDeviceAttributeWarpSize, 0) == hipErrorInvalidValue);
  CHECK(hipPointerGetAttributes(nullptr, &value) == hipErrorInvalidValue);
  CHECK(hipSetDevice(3) == hipErrorInvalidDevice);
  CHECK(hipPeekAtLastError() == hipErrorInvalidDevice);
  CHECK(hipGetLastError() == hipErrorInvalidDevice && hipGetLastError() == hipSuccess);
  CHECK(strcmp(hipGetErrorName(hipErrorInvalidValue), "hipErrorInvalidValue") == 0);
  CHECK(strcmp(hipGetErrorString(hipErrorOutOfMemory), "out of memory") == 0);
  return 0;
}
