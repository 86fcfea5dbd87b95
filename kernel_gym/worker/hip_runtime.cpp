// The host side of HIP for candidates on the simulated device: the calls that a launcher makes,
// answered through callbacks into the worker's driver. Everything runs in order on one stream, so
// that streams and synchronisation are no-ops.
//
// The HIP headers need not be installed to build this: types are stated as the ABI has them.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

namespace {

enum : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidDevice = 101,
  kNotReady = 600,
  kLaunchFailure = 719,
  kNotSupported = 801,
};

struct Dim3 {
  uint32_t x, y, z;
};

struct Callbacks {
  int (*launch)(const char* kernel, const uint32_t* grid, const uint32_t* block, void** args,
                uint64_t shared);
  uint64_t (*allocate)(uint64_t size);
  int (*release)(uint64_t address);
  int (*copy)(uint64_t target, uint64_t source, uint64_t size, int kind);
  int (*fill)(uint64_t target, int value, uint64_t size);
};

struct Configuration {
  Dim3 grid, block;
  size_t shared;
  void* stream;
};

Callbacks callbacks;
std::map<const void*, std::string>& kernels() {
  static std::map<const void*, std::string> table;
  return table;
}
Configuration pending;
int last_error = kSuccess;

int note(int error) {
  if (error != kSuccess) last_error = error;
  return error;
}

}  // namespace

extern "C" {

void kernel_gym_hip_connect(const Callbacks* given) { callbacks = *given; }
int kernel_gym_hip_kernels() { return static_cast<int>(kernels().size()); }

// -- what the compiler emits ---------------------------------------------------------------------

void** __hipRegisterFatBinary(const void*) {
  static void* handle = nullptr;
  return &handle;
}
void __hipUnregisterFatBinary(void**) {}
void __hipRegisterFunction(void**, const void* host, char*, const char* device_name, unsigned,
                           void*, void*, void*, void*, int*) {
  kernels()[host] = device_name;
}
void __hipRegisterVar(void**, void*, char*, char*, int, size_t, int, int) {}
int __hipPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared, void* stream) {
  pending = {grid, block, shared, stream};
  return kSuccess;
}
int __hipPopCallConfiguration(Dim3* grid, Dim3* block, size_t* shared, void** stream) {
  *grid = pending.grid;
  *block = pending.block;
  *shared = pending.shared;
  *stream = pending.stream;
  return kSuccess;
}

// -- launches ------------------------------------------------------------------------------------

int hipLaunchKernel(const void* host, Dim3 grid, Dim3 block, void** args, size_t shared, void*) {
  auto found = kernels().find(host);
  if (found == kernels().end()) return note(kInvalidValue);
  return note(callbacks.launch(found->second.c_str(), &grid.x, &block.x, args, shared));
}
int hipLaunchCooperativeKernel(const void* host, Dim3 grid, Dim3 block, void** args,
                               unsigned shared, void* stream) {
  return hipLaunchKernel(host, grid, block, args, shared, stream);
}

// -- memory --------------------------------------------------------------------------------------

int hipMalloc(void** pointer, size_t size) {
  uint64_t address = callbacks.allocate(size);
  *pointer = reinterpret_cast<void*>(address);
  return note(address || !size ? kSuccess : kOutOfMemory);
}
int hipMallocAsync(void** pointer, size_t size, void*) { return hipMalloc(pointer, size); }
int hipFree(void* pointer) {
  return pointer ? note(callbacks.release(reinterpret_cast<uint64_t>(pointer))) : kSuccess;
}
int hipFreeAsync(void* pointer, void*) { return hipFree(pointer); }
int hipMemcpy(void* target, const void* source, size_t size, int kind) {
  return note(callbacks.copy(reinterpret_cast<uint64_t>(target),
                             reinterpret_cast<uint64_t>(source), size, kind));
}
int hipMemcpyAsync(void* target, const void* source, size_t size, int kind, void*) {
  return hipMemcpy(target, source, size, kind);
}
int hipMemset(void* target, int value, size_t size) {
  return note(callbacks.fill(reinterpret_cast<uint64_t>(target), value, size));
}
int hipMemsetAsync(void* target, int value, size_t size, void*) {
  return hipMemset(target, value, size);
}

// -- errors --------------------------------------------------------------------------------------

int hipGetLastError() {
  int error = last_error;
  last_error = kSuccess;
  return error;
}
int hipPeekAtLastError() { return last_error; }
const char* hipGetErrorName(int error) {
  switch (error) {
    case kSuccess: return "hipSuccess";
    case kInvalidValue: return "hipErrorInvalidValue";
    case kOutOfMemory: return "hipErrorOutOfMemory";
    case kInvalidDevice: return "hipErrorInvalidDevice";
    case kNotReady: return "hipErrorNotReady";
    case kLaunchFailure: return "hipErrorLaunchFailure";
    case kNotSupported: return "hipErrorNotSupported";
    default: return "hipErrorUnknown";
  }
}
const char* hipGetErrorString(int error) { return hipGetErrorName(error); }

// -- devices -------------------------------------------------------------------------------------

int hipGetDeviceCount(int* count) {
  *count = 1;
  return kSuccess;
}
int hipGetDevice(int* device) {
  *device = 0;
  return kSuccess;
}
int hipSetDevice(int device) { return note(device == 0 ? kSuccess : kInvalidDevice); }
int hipDeviceSynchronize() { return kSuccess; }

// The head of hipDeviceProp_t, whose layout the HIP 5 headers share.
struct Properties {
  char name[256];
  size_t total_memory, shared_per_block;
  int registers_per_block, warp_size, max_threads_per_block;
  int max_threads[3], max_grid[3];
  int clock_khz, memory_clock_khz, memory_bus_bits;
  size_t constant_memory;
  int major, minor, compute_units, l2_bytes, max_threads_per_unit;
};
int hipGetDeviceProperties(Properties* properties, int device) {
  if (device != 0) return note(kInvalidDevice);
  Properties found = {};
  std::strcpy(found.name, "AMD Instinct MI300X");
  found.total_memory = size_t{192} << 30;
  found.shared_per_block = 65536;
  found.registers_per_block = 65536;
  found.warp_size = 64;
  found.max_threads_per_block = 1024;
  for (int& n : found.max_threads) n = 1024;
  for (int& n : found.max_grid) n = 2147483647;
  found.clock_khz = 2100000;
  found.memory_clock_khz = 2600000;
  found.memory_bus_bits = 8192;
  found.constant_memory = 2147483647;
  found.major = 9;
  found.minor = 4;
  found.compute_units = 304;
  found.l2_bytes = 4 << 20;
  found.max_threads_per_unit = 2048;
  *properties = found;
  return kSuccess;
}

// -- streams and events: everything is in order already --------------------------------------------

int hipStreamCreate(void** stream) {
  *stream = nullptr;
  return kSuccess;
}
int hipStreamCreateWithFlags(void** stream, unsigned) { return hipStreamCreate(stream); }
int hipStreamDestroy(void*) { return kSuccess; }
int hipStreamSynchronize(void*) { return kSuccess; }
int hipStreamWaitEvent(void*, void*, unsigned) { return kSuccess; }
int hipEventCreate(void** event) {
  *event = nullptr;
  return kSuccess;
}
int hipEventCreateWithFlags(void** event, unsigned) { return hipEventCreate(event); }
int hipEventDestroy(void*) { return kSuccess; }
int hipEventRecord(void*, void*) { return kSuccess; }
int hipEventSynchronize(void*) { return kSuccess; }

}  // extern "C"
