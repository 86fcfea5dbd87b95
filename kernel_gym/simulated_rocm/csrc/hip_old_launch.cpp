// HIP host runtime: launches in three steps, as compilers before HIP 3 emit them.
#include <cstring>
#include <string>

#include "hip_runtime.h"

extern "C" {
int __hipPushCallConfiguration(Dim3, Dim3, size_t, void*);
int __hipPopCallConfiguration(Dim3*, Dim3*, size_t*, void**);
}

namespace {

enum : int { kMissingConfiguration = 52 };
constexpr size_t kMostBytes = 1 << 20;  // of all arguments; no kernel takes so many

thread_local std::string arguments;  // of the next launch, laid out as the kernel's segment
thread_local bool configured = false;

}  // namespace

extern "C" {

int hipConfigureCall(Dim3 grid, Dim3 block, size_t shared, void* stream) {
  arguments.clear();
  configured = true;
  return hip_note(__hipPushCallConfiguration(grid, block, shared, stream));
}
int hipSetupArgument(const void* argument, size_t size, size_t offset) {
  if (!argument || size > kMostBytes || offset > kMostBytes) return hip_note(kInvalidValue);
  if (arguments.size() < offset + size) arguments.resize(offset + size, '\0');
  std::memcpy(&arguments[offset], argument, size);
  return hip_note(kSuccess);
}
int hipLaunchByPtr(const void* host) {
  if (!configured) return hip_note(kMissingConfiguration);
  configured = false;
  Dim3 grid = {}, block = {};
  size_t shared = 0;
  void* stream = nullptr;
  __hipPopCallConfiguration(&grid, &block, &shared, &stream);
  const char* name = hip_kernel_of(host);
  if (!name) return hip_note(kInvalidDeviceFunction);
  if (const int wrong = hip_check_stream(stream)) return wrong;
  void* packed[1] = {&arguments[0]};
  return hip_launch(name, grid, block, packed, shared, stream, arguments.size());
}

}  // extern "C"
