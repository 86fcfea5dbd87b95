// The host side of HIP for candidates on the simulated device: the calls that have an effect. They
// use callbacks into the worker's driver. All work runs in order, so streams are only names.
#include "hip_runtime.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

Callbacks hip_callbacks;
Device hip_device;

namespace {

struct Configuration {
  Dim3 grid, block;
  size_t shared;
  void* stream;
};
struct Event {
  double seconds = -1;
};
struct Module {
  int number;
  std::map<std::string, std::string> kernels;
};

std::map<const void*, std::string>& kernels() {
  static std::map<const void*, std::string> table;
  return table;
}
std::map<const void*, std::string>& variables() {
  static std::map<const void*, std::string> table;
  return table;
}
Configuration pending;
int last_error = kSuccess;
char stream_of_its_own;  // its address stands for every created stream

uint64_t address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

int launch(const char* kernel, Dim3 grid, Dim3 block, void** args, size_t shared,
           uint64_t packed = 0) {
  return hip_note(hip_callbacks.launch(kernel, &grid.x, &block.x, args, shared, packed));
}

int find_variable(const void* symbol, uint64_t* place, uint64_t* size) {
  auto found = variables().find(symbol);
  if (found == variables().end()) return kInvalidSymbol;
  return hip_callbacks.variable(found->second.c_str(), place, size);
}

}  // namespace

int hip_note(int error) {
  if (error != kSuccess) last_error = error;
  return error;
}

const char* hip_kernel_of(const void* host) {
  auto found = kernels().find(host);
  return found == kernels().end() ? nullptr : found->second.c_str();
}

extern "C" {

void kernel_gym_hip_connect(const Callbacks* given, const Device* device) {
  hip_callbacks = *given;
  hip_device = *device;
}
int kernel_gym_hip_kernels() { return static_cast<int>(kernels().size()); }

// -- what the compiler emits ---------------------------------------------------------------------

void** __hipRegisterFatBinary(const void*) {
  static void* handle = nullptr;
  return &handle;
}
void __hipUnregisterFatBinary(void**) {}
void __hipRegisterFunction(void**, const void* host, char*, const char* device_name, unsigned,
                           void*, void*, void*, void*, int*) {
  kernels()[host] = std::string("0:") + device_name;
}
void __hipRegisterVar(void**, void* host, char*, char* device_name, int, size_t, int, int) {
  variables()[host] = std::string("0:") + device_name;
}
void __hipRegisterManagedVar(void*, void**, void*, const char*, size_t, unsigned) {}
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
  const char* name = hip_kernel_of(host);
  return name ? launch(name, grid, block, args, shared) : hip_note(kInvalidDeviceFunction);
}
int hipExtLaunchKernel(const void* host, Dim3 grid, Dim3 block, void** args, size_t shared,
                       void* stream, Event* start, Event* stop, int) {
  if (start) start->seconds = hip_callbacks.clock();
  const int status = hipLaunchKernel(host, grid, block, args, shared, stream);
  if (stop) stop->seconds = hip_callbacks.clock();
  return status;
}
int hipLaunchCooperativeKernel(const void* host, Dim3 grid, Dim3 block, void** args,
                               unsigned shared, void* stream) {
  return hipLaunchKernel(host, grid, block, args, shared, stream);
}

// -- modules: assembler text or a code object -----------------------------------------------------

int hipModuleLoadData(Module** module, const void* image) {
  const int number = hip_callbacks.module(image, nullptr);
  if (!number) return hip_note(kInvalidImage);
  *module = new Module{number, {}};
  return kSuccess;
}
int hipModuleLoadDataEx(Module** module, const void* image, unsigned, void*, void**) {
  return hipModuleLoadData(module, image);
}
int hipModuleLoad(Module** module, const char* path) {
  const int number = hip_callbacks.module(nullptr, path);
  if (!number) return hip_note(kInvalidImage);
  *module = new Module{number, {}};
  return kSuccess;
}
int hipModuleUnload(Module* module) {
  delete module;
  return kSuccess;
}
int hipModuleGetFunction(const char** function, Module* module, const char* name) {
  std::string& full = module->kernels[name];
  full = std::to_string(module->number) + ":" + name;
  KernelFacts facts;
  if (hip_callbacks.facts(full.c_str(), 64, 0, &facts)) return hip_note(kNotFound);
  *function = full.c_str();
  return kSuccess;
}
int hipModuleGetGlobal(void** pointer, size_t* bytes, Module* module, const char* name) {
  const std::string full = std::to_string(module->number) + ":" + name;
  uint64_t place = 0, size = 0;
  if (hip_callbacks.variable(full.c_str(), &place, &size)) return hip_note(kNotFound);
  if (pointer) *pointer = reinterpret_cast<void*>(place);
  if (bytes) *bytes = size;
  return kSuccess;
}
// `extra` is the other form of arguments: {1, buffer, 2, &size, 3}.
int hipModuleLaunchKernel(const char* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void*, void** args,
                          void** extra) {
  const Dim3 grid = {gx, gy, gz}, block = {bx, by, bz};
  if (args || !extra) return launch(function, grid, block, args, shared);
  void* packed[1] = {nullptr};
  uint64_t size = 0;
  for (; address(*extra) != 3; extra += 2) {
    if (address(extra[0]) == 1) packed[0] = extra[1];
    if (address(extra[0]) == 2) size = *static_cast<size_t*>(extra[1]);
  }
  return launch(function, grid, block, packed, shared, size);
}

// -- memory --------------------------------------------------------------------------------------

int hipMalloc(void** pointer, size_t size) {
  uint64_t place = hip_callbacks.allocate(size);
  *pointer = reinterpret_cast<void*>(place);
  return hip_note(place || !size ? kSuccess : kOutOfMemory);
}
int hipMallocAsync(void** pointer, size_t size, void*) { return hipMalloc(pointer, size); }
int hipMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 255) / 256 * 256;
  return hipMalloc(pointer, *pitch * height);
}
int hipFree(void* pointer) {
  return pointer ? hip_note(hip_callbacks.release(address(pointer))) : kSuccess;
}
int hipFreeAsync(void* pointer, void*) { return hipFree(pointer); }
// Pinned memory is ordinary memory of the host; kernels cannot reach it here.
int hipHostMalloc(void** pointer, size_t size, unsigned) {
  *pointer = std::malloc(size ? size : 1);
  return hip_note(*pointer ? kSuccess : kOutOfMemory);
}
int hipMallocHost(void** pointer, size_t size) { return hipHostMalloc(pointer, size, 0); }
int hipHostFree(void* pointer) {
  std::free(pointer);
  return kSuccess;
}
int hipFreeHost(void* pointer) { return hipHostFree(pointer); }
int hipHostRegister(void*, size_t, unsigned) { return kSuccess; }
int hipHostUnregister(void*) { return kSuccess; }
int hipHostGetDevicePointer(void**, void*, unsigned) { return hip_note(kNotSupported); }
int hipMallocManaged(void**, size_t, unsigned) { return hip_note(kNotSupported); }

int hipMemcpy(void* target, const void* source, size_t size, int kind) {
  return hip_note(hip_callbacks.copy(address(target), address(source), size, kind));
}
int hipMemcpyAsync(void* target, const void* source, size_t size, int kind, void*) {
  return hipMemcpy(target, source, size, kind);
}
int hipMemcpyWithStream(void* target, const void* source, size_t size, int kind, void*) {
  return hipMemcpy(target, source, size, kind);
}
int hipMemcpyHtoD(void* target, void* source, size_t size) {
  return hipMemcpy(target, source, size, 1);
}
int hipMemcpyDtoH(void* target, void* source, size_t size) {
  return hipMemcpy(target, source, size, 2);
}
int hipMemcpyDtoD(void* target, void* source, size_t size) {
  return hipMemcpy(target, source, size, 3);
}
int hipMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                size_t width, size_t height, int kind) {
  for (size_t row = 0; row < height; row++) {
    const int status = hipMemcpy(static_cast<char*>(target) + row * target_pitch,
                                 static_cast<const char*>(source) + row * source_pitch, width, kind);
    if (status) return status;
  }
  return kSuccess;
}
int hipMemset(void* target, int value, size_t size) {
  return hip_note(hip_callbacks.fill(address(target), value & 0xff, size, 1));
}
int hipMemsetAsync(void* target, int value, size_t size, void*) {
  return hipMemset(target, value, size);
}
int hipMemsetD8(void* target, unsigned char value, size_t count) {
  return hipMemset(target, value, count);
}
int hipMemsetD16(void* target, unsigned short value, size_t count) {
  return hip_note(hip_callbacks.fill(address(target), value, count, 2));
}
int hipMemsetD32(void* target, int value, size_t count) {
  return hip_note(hip_callbacks.fill(address(target), value, count, 4));
}
int hipMemsetD32Async(void* target, int value, size_t count, void*) {
  return hipMemsetD32(target, value, count);
}

// -- variables of the source ---------------------------------------------------------------------

int hipGetSymbolAddress(void** pointer, const void* symbol) {
  uint64_t place = 0, size = 0;
  const int status = find_variable(symbol, &place, &size);
  *pointer = reinterpret_cast<void*>(place);
  return hip_note(status);
}
int hipGetSymbolSize(size_t* bytes, const void* symbol) {
  uint64_t place = 0, size = 0;
  const int status = find_variable(symbol, &place, &size);
  *bytes = size;
  return hip_note(status);
}
int hipMemcpyToSymbol(const void* symbol, const void* source, size_t size, size_t offset,
                      int kind) {
  uint64_t place = 0, room = 0;
  const int status = find_variable(symbol, &place, &room);
  if (status || offset + size > room) return hip_note(status ? status : kInvalidValue);
  return hip_note(hip_callbacks.copy(place + offset, address(source), size, kind));
}
int hipMemcpyToSymbolAsync(const void* symbol, const void* source, size_t size, size_t offset,
                           int kind, void*) {
  return hipMemcpyToSymbol(symbol, source, size, offset, kind);
}
int hipMemcpyFromSymbol(void* target, const void* symbol, size_t size, size_t offset, int kind) {
  uint64_t place = 0, room = 0;
  const int status = find_variable(symbol, &place, &room);
  if (status || offset + size > room) return hip_note(status ? status : kInvalidValue);
  return hip_note(hip_callbacks.copy(address(target), place + offset, size, kind));
}
int hipMemcpyFromSymbolAsync(void* target, const void* symbol, size_t size, size_t offset,
                             int kind, void*) {
  return hipMemcpyFromSymbol(target, symbol, size, offset, kind);
}

// -- errors --------------------------------------------------------------------------------------

int hipGetLastError() {
  int error = last_error;
  last_error = kSuccess;
  return error;
}
int hipPeekAtLastError() { return last_error; }

// -- streams and events: everything is in order already, and has its modelled time -----------------

int hipDeviceSynchronize() { return kSuccess; }
int hipStreamCreate(void** stream) {
  *stream = &stream_of_its_own;
  return kSuccess;
}
int hipStreamCreateWithFlags(void** stream, unsigned) { return hipStreamCreate(stream); }
int hipStreamCreateWithPriority(void** stream, unsigned, int) { return hipStreamCreate(stream); }
int hipStreamDestroy(void*) { return kSuccess; }
int hipStreamSynchronize(void*) { return kSuccess; }
int hipStreamQuery(void*) { return kSuccess; }
int hipStreamWaitEvent(void*, void*, unsigned) { return kSuccess; }
int hipStreamAddCallback(void* stream, void (*call)(void*, int, void*), void* data, unsigned) {
  call(stream, kSuccess, data);
  return kSuccess;
}
int hipLaunchHostFunc(void*, void (*call)(void*), void* data) {
  call(data);
  return kSuccess;
}
int hipEventCreate(Event** event) {
  *event = new Event;
  return kSuccess;
}
int hipEventCreateWithFlags(Event** event, unsigned) { return hipEventCreate(event); }
int hipEventDestroy(Event* event) {
  delete event;
  return kSuccess;
}
int hipEventRecord(Event* event, void*) {
  if (!event) return hip_note(kInvalidValue);
  event->seconds = hip_callbacks.clock();
  return kSuccess;
}
int hipEventSynchronize(Event*) { return kSuccess; }
int hipEventQuery(Event*) { return kSuccess; }
int hipEventElapsedTime(float* milliseconds, Event* start, Event* stop) {
  if (!start || !stop || start->seconds < 0 || stop->seconds < 0) return hip_note(kInvalidValue);
  *milliseconds = static_cast<float>((stop->seconds - start->seconds) * 1e3);
  return kSuccess;
}

}  // extern "C"
