// HIP host runtime: one device, its context, and settings that change nothing.
#include <cstdio>
#include <cstring>

#include "hip_runtime.h"

namespace {
char context_of_its_own;  // its address stands for every context
}

extern "C" {

int hipDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return kSuccess;
}
int hipDeviceEnablePeerAccess(int, unsigned) { return hip_note(kPeerAccessUnsupported); }
int hipDeviceDisablePeerAccess(int) { return hip_note(kPeerAccessUnsupported); }
int hipDeviceGetP2PAttribute(int* value, int, int, int) {
  *value = 0;
  return kSuccess;
}
int hipChooseDevice(int* ordinal, const void*) {
  *ordinal = 0;
  return kSuccess;
}
int hipChooseDeviceR0600(int* ordinal, const void* wanted) {
  return hipChooseDevice(ordinal, wanted);
}
int hipDeviceComputeCapability(int* major, int* minor, int) {
  *major = 9;
  *minor = device().minor;
  return kSuccess;
}
int hipDeviceGetPCIBusId(char* id, int length, int) {
  std::snprintf(id, length, "0000:00:00.0");
  return kSuccess;
}
int hipDeviceGetByPCIBusId(int* ordinal, const char*) {
  *ordinal = 0;
  return kSuccess;
}
int hipDeviceGetUuid(char* uuid, int) {
  std::memcpy(uuid, "kernel-gym-sim-0", 16);
  return kSuccess;
}
int hipDeviceGetLimit(size_t* value, int) {
  *value = 8 << 20;
  return kSuccess;
}
int hipDeviceSetLimit(int, size_t) { return kSuccess; }
int hipDeviceGetCacheConfig(int* config) {
  *config = 0;
  return kSuccess;
}
int hipDeviceGetSharedMemConfig(int* config) { return hipDeviceGetCacheConfig(config); }
int hipGetDeviceFlags(unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
int hipSetValidDevices(int*, int) { return kSuccess; }
int hipProfilerStart() { return kSuccess; }
int hipProfilerStop() { return kSuccess; }

int hipCtxCreate(void** context, unsigned, int) {
  *context = &context_of_its_own;
  return kSuccess;
}
int hipCtxDestroy(void*) { return kSuccess; }
int hipCtxGetCurrent(void** context) { return hipCtxCreate(context, 0, 0); }
int hipCtxSetCurrent(void*) { return kSuccess; }
int hipCtxPushCurrent(void*) { return kSuccess; }
int hipCtxPopCurrent(void** context) { return hipCtxCreate(context, 0, 0); }
int hipCtxGetDevice(int* ordinal) {
  *ordinal = 0;
  return kSuccess;
}
int hipDevicePrimaryCtxRetain(void** context, int) { return hipCtxCreate(context, 0, 0); }
int hipDevicePrimaryCtxRelease(int) { return kSuccess; }
int hipDevicePrimaryCtxReset(int) { return kSuccess; }
int hipDevicePrimaryCtxSetFlags(int, unsigned) { return kSuccess; }
int hipDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}

}  // extern "C"
