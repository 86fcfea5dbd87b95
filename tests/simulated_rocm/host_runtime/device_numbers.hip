// There is one device: what names another one, or none, is an error.
#include "check.h"

int main() {
  int value = 7, major = 0, minor = 0;
  char id[64];
  hipUUID uuid;
  hipCtx_t context;
  unsigned flags;
  for (int other : {-1, 1}) {
    CHECK(hipDeviceComputeCapability(&major, &minor, other) == hipErrorInvalidDevice);
    CHECK(hipDeviceGetPCIBusId(id, sizeof id, other) == hipErrorInvalidDevice);
    CHECK(hipDeviceGetUuid(&uuid, other) == hipErrorInvalidDevice);
    CHECK(hipDeviceCanAccessPeer(&value, 0, other) == hipErrorInvalidDevice);
    CHECK(hipDeviceCanAccessPeer(&value, other, 0) == hipErrorInvalidDevice);
    CHECK(hipCtxCreate(&context, 0, other) == hipErrorInvalidValue);
    CHECK(hipDevicePrimaryCtxRetain(&context, other) == hipErrorInvalidDevice);
    CHECK(hipDevicePrimaryCtxGetState(other, &flags, &value) == hipErrorInvalidDevice);
    CHECK(hipDevicePrimaryCtxReset(other) == hipErrorInvalidDevice);
  }
  CHECK(value == 7);
  OK(hipDeviceCanAccessPeer(&value, 0, 0));
  CHECK(value == 0);
  CHECK(hipDeviceEnablePeerAccess(0, 0) == hipErrorInvalidDevice);
  CHECK(hipDeviceEnablePeerAccess(0, 1) == hipErrorInvalidValue);
  CHECK(hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 0, 0) ==
        hipErrorInvalidDevice);
  OK(hipDeviceComputeCapability(&major, &minor, 0));
  CHECK(major == 9 && minor == 4);

  OK(hipDeviceGetPCIBusId(id, sizeof id, 0));
  value = 7;
  OK(hipDeviceGetByPCIBusId(&value, id));
  CHECK(value == 0);
  for (const char* wrong : {"", "text", "0000:00:00", "0000:00:01.0", "ffff:00:00.0"})
    CHECK(hipDeviceGetByPCIBusId(&value, wrong) == hipErrorInvalidValue);
  CHECK(hipDeviceGetByPCIBusId(&value, nullptr) == hipErrorInvalidValue);
  CHECK(hipDeviceGetByPCIBusId(nullptr, id) == hipErrorInvalidValue);

  hipDeviceProp_t properties;
  OK(hipGetDeviceProperties(&properties, 0));
  OK(hipChooseDevice(&value, &properties));
  CHECK(hipChooseDevice(&value, nullptr) == hipErrorInvalidValue);
  CHECK(hipChooseDevice(nullptr, &properties) == hipErrorInvalidValue);
  CHECK(hipDeviceSetCacheConfig(hipFuncCachePreferL1) == hipSuccess);
  CHECK(hipDeviceSetCacheConfig(static_cast<hipFuncCache_t>(-1)) == hipErrorInvalidValue);
  return 0;
}
