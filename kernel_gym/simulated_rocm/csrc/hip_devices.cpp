// HIP host runtime: one device, its context, and settings that change nothing.
#include <atomic>
#include <cstdio>
#include <cstring>

#include "hip_runtime.h"

namespace {
char context_of_its_own;  // its address stands for every context
enum : int { kLimits = 3, kUnsupportedLimit = 215 };
std::atomic<size_t> limits[kLimits] = {{1024}, {4 << 20}, {8 << 20}};  // stack, printf, malloc

// An error unless it is the number of the only device.
int check_device(int ordinal) { return hip_note(ordinal == 0 ? kSuccess : kInvalidDevice); }
}

extern "C" {

// There is no other device.
int hipDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  if (!can) return hip_note(kInvalidValue);
  return check_device(ordinal) ?: check_device(peer) ?: hip_store(can, 0);
}
int hipDeviceEnablePeerAccess(int, unsigned flags) {
  return hip_note(flags ? kInvalidValue : kInvalidDevice);
}
int hipDeviceDisablePeerAccess(int) { return hip_note(kInvalidDevice); }
int hipDeviceGetP2PAttribute(int* value, int, int, int) {
  return hip_note(value ? kInvalidDevice : kInvalidValue);
}
int hipChooseDevice(int* ordinal, const void* wanted) {
  return wanted ? hip_store(ordinal, 0) : hip_note(kInvalidValue);
}
int hipChooseDeviceR0600(int* ordinal, const void* wanted) {
  return hipChooseDevice(ordinal, wanted);
}
int hipChooseDeviceR0000(int* ordinal, const void* wanted) {
  return hipChooseDevice(ordinal, wanted);
}
int hipDeviceComputeCapability(int* major, int* minor, int ordinal) {
  return check_device(ordinal) ?: hip_store(major, 9) ?: hip_store(minor, device().minor);
}
int hipDeviceGetPCIBusId(char* id, int length, int ordinal) {
  if (const int wrong = check_device(ordinal)) return wrong;
  if (!id || length <= 0) return hip_note(kInvalidValue);
  std::snprintf(id, length, "0000:00:00.0");
  return hip_note(kSuccess);
}
int hipDeviceGetByPCIBusId(int* ordinal, const char* id) {
  unsigned part[4] = {1, 1, 1, 1};
  if (!id || std::sscanf(id, "%4x:%2x:%2x.%1x", part, part + 1, part + 2, part + 3) < 4)
    return hip_note(kInvalidValue);
  if (part[0] | part[1] | part[2] | part[3]) return hip_note(kInvalidValue);
  return hip_store(ordinal, 0);
}
int hipDeviceGetUuid(char* uuid, int ordinal) {
  if (const int wrong = check_device(ordinal)) return wrong;
  if (!uuid) return hip_note(kInvalidValue);
  std::memcpy(uuid, kUuid, 16);
  return hip_note(kSuccess);
}
int hipDeviceGetLimit(size_t* value, int limit) {
  if (!value) return hip_note(kInvalidValue);
  if (limit < 0 || limit >= kLimits) return hip_note(kUnsupportedLimit);
  *value = limits[limit];
  return hip_note(kSuccess);
}
int hipDeviceSetLimit(int limit, size_t value) {  // read back, and without effect
  if (limit < 0 || limit >= kLimits) return hip_note(kUnsupportedLimit);
  limits[limit] = value;
  return hip_note(kSuccess);
}
int hipDeviceGetCacheConfig(int* config) { return hip_store(config, 0); }
int hipDeviceGetSharedMemConfig(int* config) { return hipDeviceGetCacheConfig(config); }
int hipGetDeviceFlags(unsigned* flags) { return hip_store(flags, 0u); }
int hipSetValidDevices(int*, int) { return hip_note(kSuccess); }
int hipProfilerStart() { return hip_note(kSuccess); }
int hipProfilerStop() { return hip_note(kSuccess); }

int hipCtxCreate(void** context, unsigned, int ordinal) {
  if (ordinal) return hip_note(kInvalidValue);
  return hip_store<void*>(context, &context_of_its_own);
}
int hipCtxDestroy(void*) { return hip_note(kSuccess); }
int hipCtxGetCurrent(void** context) { return hipCtxCreate(context, 0, 0); }
int hipCtxSetCurrent(void*) { return hip_note(kSuccess); }
int hipCtxPushCurrent(void*) { return hip_note(kSuccess); }
int hipCtxPopCurrent(void** context) { return hipCtxCreate(context, 0, 0); }
int hipCtxGetDevice(int* ordinal) { return hip_store(ordinal, 0); }
int hipDevicePrimaryCtxRetain(void** context, int ordinal) {
  return check_device(ordinal) ?: hipCtxCreate(context, 0, 0);
}
int hipDevicePrimaryCtxRelease(int ordinal) { return check_device(ordinal); }
int hipDevicePrimaryCtxReset(int ordinal) { return check_device(ordinal); }
int hipDevicePrimaryCtxSetFlags(int ordinal, unsigned) { return check_device(ordinal); }
int hipDevicePrimaryCtxGetState(int ordinal, unsigned* flags, int* active) {
  return check_device(ordinal) ?: hip_store(flags, 0u) ?: hip_store(active, 1);
}

}  // extern "C"
