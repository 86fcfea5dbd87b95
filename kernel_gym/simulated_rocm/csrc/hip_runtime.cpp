// HIP host runtime: what the compiler emits, launches and modules. All work runs in order.
#include "hip_runtime.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "hip_handles.h"

namespace {

struct Configuration {
  Dim3 grid, block;
  size_t shared;
  void* stream;
};
// A variable that host and device share: `pointer` is the host's, the device has one of the name.
struct Managed {
  std::string name;
  void** pointer;
};
// The device code of one object file of the program. It is loaded when it is first needed.
struct FatBinary {
  const void* image;
  int number = -1;
  std::vector<Managed> managed;
};
struct Named {
  FatBinary* binary;
  std::string name, full;
};
struct Module {
  int number;
  std::map<std::string, std::string> kernels;
};
// What clang writes for each object file.
struct Wrapper {
  uint32_t magic, version;
  const void* image;
  void* unused;
};

std::recursive_mutex& table_lock() {
  static auto* lock = new std::recursive_mutex;
  return *lock;
}
std::map<const void*, Named>& kernels() {
  static auto* table = new std::map<const void*, Named>;
  return *table;
}
std::map<const void*, Named>& variables() {
  static auto* table = new std::map<const void*, Named>;
  return *table;
}
// The names that programs have as hipFunction_t.
std::set<const char*>& functions() {
  static auto* table = new std::set<const char*>;
  return *table;
}
thread_local Configuration pending;
int check_module(const Module* module) {
  return hip_note(handles<Module>().has(module) ? kSuccess : kInvalidHandle);
}
// One more hipFunction_t: a name that lives as long as its module.
void give_function(const char** function, const char* name) {
  std::lock_guard<std::recursive_mutex> hold(table_lock());
  functions().insert(name);
  *function = name;
}

// Device code that is not in the file is module 0: the source of a candidate.
bool is_elsewhere(const void* image) { return !image || !*static_cast<const char*>(image); }

void place_managed(const FatBinary& binary) {
  for (const Managed& variable : binary.managed) {
    uint64_t place = 0, size = 0;
    const std::string full = std::to_string(binary.number) + ":" + variable.name;
    if (gpu().variable(full.c_str(), &place, &size)) continue;
    gpu().copy(place, address_of(variable.pointer), sizeof(void*), 1);
  }
}

const char* full_name(Named& named) {
  std::lock_guard<std::recursive_mutex> hold(table_lock());
  FatBinary& binary = *named.binary;
  if (binary.number < 0) {
    binary.number = is_elsewhere(binary.image) ? 0 : gpu().module(binary.image, nullptr);
    if (binary.number > 0) place_managed(binary);
  }
  if (named.full.empty()) named.full = std::to_string(binary.number) + ":" + named.name;
  return named.full.c_str();
}

}  // namespace

bool hip_is_function(const char* kernel) {
  std::lock_guard<std::recursive_mutex> hold(table_lock());
  return functions().count(kernel);
}

const char* hip_kernel_of(const void* host) {
  auto entry = kernels().find(host);
  return entry == kernels().end() ? nullptr : full_name(entry->second);
}

namespace {
// Refuses a grid whose workgroups cannot all be resident at once.
int check_cooperative(const char* kernel, Dim3 grid, Dim3 block, size_t shared) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const uint64_t workgroups = uint64_t{grid.x} * grid.y * grid.z;
  KernelFacts facts = {};
  if (!kernel || !threads || !workgroups) return kSuccess;  // the launch says what is wrong
  if (gpu().facts(kernel, threads, shared, &facts)) return kSuccess;
  const uint64_t resident = uint64_t(facts.workgroups_per_unit) * device().units;
  return hip_note(workgroups > resident ? kCooperativeTooLarge : kSuccess);
}
}  // namespace

int hip_launch(const char* kernel, Dim3 grid, Dim3 block, void** args, size_t shared,
               const void* stream, uint64_t packed) {
  for (uint32_t size : {grid.x, grid.y, grid.z, block.x, block.y, block.z}) {
    if (!size) return hip_note(kInvalidConfiguration);
  }
  if (!hip_is_captured(stream)) {
    return hip_note(gpu().launch(kernel, &grid.x, &block.x, args, shared, packed));
  }
  std::function<int()> work;
  const int wrong = hip_recorded_launch(kernel, grid, block, args, shared, packed, &work);
  return wrong ? hip_note(wrong) : hip_queue(stream, work, 0);
}

int hip_recorded_launch(const char* kernel, Dim3 grid, Dim3 block, void** args, size_t shared,
                        uint64_t packed, std::function<int()>* work) {
  for (uint32_t size : {grid.x, grid.y, grid.z, block.x, block.y, block.z}) {
    if (!size) return kInvalidConfiguration;
  }
  std::string segment;
  if (packed) {
    segment.assign(static_cast<const char*>(args[0]), packed);
  } else if (const int wrong = hip_pack(kernel, args, &segment)) {
    return wrong;
  }
  const std::string name = kernel;
  *work = [name, grid, block, segment, shared] {
    void* place = const_cast<char*>(segment.data());
    return hip_note(gpu().launch(name.c_str(), &grid.x, &block.x, &place, shared, segment.size()));
  };
  return kSuccess;
}

int hip_find_variable(const void* symbol, uint64_t* place, uint64_t* size) {
  auto entry = variables().find(symbol);
  if (entry == variables().end()) return kInvalidSymbol;
  return gpu().variable(full_name(entry->second), place, size);
}

extern "C" {

// -- what the compiler emits ---------------------------------------------------------------------

void** __hipRegisterFatBinary(const void* wrapper) {
  const void* image = wrapper ? static_cast<const Wrapper*>(wrapper)->image : nullptr;
  return reinterpret_cast<void**>(new FatBinary{image, -1, {}});
}
void __hipUnregisterFatBinary(void**) {}
void __hipRegisterFunction(void** binary, const void* host, char*, const char* device_name,
                           unsigned, void*, void*, void*, void*, int*) {
  kernels()[host] = {reinterpret_cast<FatBinary*>(binary), device_name, ""};
}
void __hipRegisterVar(void** binary, void* host, char*, char* device_name, int, size_t, int, int) {
  variables()[host] = {reinterpret_cast<FatBinary*>(binary), device_name, ""};
}
void __hipRegisterManagedVar(void* binary, void** pointer, void* initial, const char* name,
                             size_t size, unsigned) {
  if (!gpu().allocate_visible) return;
  *pointer = reinterpret_cast<void*>(gpu().allocate_visible(size));
  if (*pointer && initial) std::memcpy(*pointer, initial, size);
  static_cast<FatBinary*>(binary)->managed.push_back({name, pointer});
  variables()[pointer] = {static_cast<FatBinary*>(binary), name, ""};
}
void __hipRegisterTexture(void**, void*, char*, char*, int, int, int) {}
void __hipRegisterSurface(void**, void*, char*, char*, int, int) {}
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

int hipLaunchKernel(const void* host, Dim3 grid, Dim3 block, void** args, size_t shared,
                    void* stream) {
  if (const int wrong = hip_check_stream(stream)) return wrong;
  const char* name = hip_kernel_of(host);
  return name ? hip_launch(name, grid, block, args, shared, stream) : hip_note(kInvalidDeviceFunction);
}
int hipLaunchKernel_spt(const void* host, Dim3 grid, Dim3 block, void** args, size_t shared,
                        void* stream) {
  return hipLaunchKernel(host, grid, block, args, shared, stream);
}
int hipLaunchCooperativeKernel(const void* host, Dim3 grid, Dim3 block, void** args,
                               unsigned shared, void* stream) {
  if (const int wrong = check_cooperative(hip_kernel_of(host), grid, block, shared)) return wrong;
  return hipLaunchKernel(host, grid, block, args, shared, stream);
}

// -- modules: assembler text or a code object -----------------------------------------------------

int hipModuleLoadData(Module** module, const void* image) {
  if (!module || !image) return hip_note(kInvalidValue);
  const int number = gpu().module(image, nullptr);
  if (!number) return hip_note(kInvalidImage);
  *module = handles<Module>().add({number, {}});
  return hip_note(kSuccess);
}
int hipModuleLoadDataEx(Module** module, const void* image, unsigned, void*, void**) {
  return hipModuleLoadData(module, image);
}
int hipModuleLoad(Module** module, const char* path) {
  if (!module || !path) return hip_note(kInvalidValue);
  if (access(path, R_OK)) return hip_note(kFileNotFound);
  const int number = gpu().module(nullptr, path);
  if (!number) return hip_note(kInvalidImage);
  *module = handles<Module>().add({number, {}});
  return hip_note(kSuccess);
}
int hipModuleUnload(Module* module) {
  if (const int wrong = check_module(module)) return wrong;
  {
    std::lock_guard<std::recursive_mutex> hold(table_lock());
    for (const auto& kernel : module->kernels) functions().erase(kernel.second.c_str());
  }
  handles<Module>().remove(module);
  return hip_note(kSuccess);
}
int hipModuleGetFunction(const char** function, Module* module, const char* name) {
  if (!function || !name) return hip_note(kInvalidValue);
  if (const int wrong = check_module(module)) return wrong;
  const std::string full = std::to_string(module->number) + ":" + name;
  KernelFacts facts;
  if (gpu().facts(full.c_str(), 64, 0, &facts)) return hip_note(kNotFound);
  give_function(function, module->kernels.emplace(name, full).first->second.c_str());
  return hip_note(kSuccess);
}
int hipModuleGetGlobal(void** pointer, size_t* bytes, Module* module, const char* name) {
  if ((!pointer && !bytes) || !name) return hip_note(kInvalidValue);
  if (const int wrong = check_module(module)) return wrong;
  const std::string full = std::to_string(module->number) + ":" + name;
  uint64_t place = 0, size = 0;
  if (gpu().variable(full.c_str(), &place, &size)) return hip_note(kNotFound);
  if (pointer) *pointer = reinterpret_cast<void*>(place);
  if (bytes) *bytes = size;
  return hip_note(kSuccess);
}
// `extra` is the other form of arguments: {1, buffer, 2, &size, 3}.
int hipModuleLaunchKernel(const char* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void* stream, void** args,
                          void** extra) {
  if (!hip_is_function(function)) return hip_note(kInvalidHandle);
  if (const int wrong = hip_check_stream(stream)) return wrong;
  const Dim3 grid = {gx, gy, gz}, block = {bx, by, bz};
  if (args || !extra) return hip_launch(function, grid, block, args, shared, stream);
  void* packed[1] = {nullptr};
  uint64_t size = 0;
  for (int part = 0; part < 2 && address_of(*extra) != 3; part++, extra += 2) {
    if (address_of(extra[0]) == 1) packed[0] = extra[1];
    if (address_of(extra[0]) == 2 && extra[1]) size = *static_cast<size_t*>(extra[1]);
  }
  if (address_of(*extra) != 3 || (size && !packed[0])) return hip_note(kInvalidValue);
  return hip_launch(function, grid, block, packed, shared, stream, size);
}
int hipModuleLaunchCooperativeKernel(const char* function, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                     void* stream, void** args) {
  if (!hip_is_function(function)) return hip_note(kInvalidHandle);
  const Dim3 grid = {gx, gy, gz}, block = {bx, by, bz};
  if (const int wrong = check_cooperative(function, grid, block, shared)) return wrong;
  return hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, args, nullptr);
}
// This form counts threads, not workgroups.
int hipExtModuleLaunchKernel(const char* function, uint32_t x, uint32_t y, uint32_t z, uint32_t bx,
                             uint32_t by, uint32_t bz, size_t shared, void* stream, void** args,
                             void** extra, void*, void*, uint32_t) {
  if (!bx || !by || !bz) return hip_note(kInvalidConfiguration);
  return hipModuleLaunchKernel(function, (x + bx - 1) / bx, (y + by - 1) / by, (z + bz - 1) / bz,
                               bx, by, bz, static_cast<unsigned>(shared), stream, args, extra);
}
int hipHccModuleLaunchKernel(const char* function, uint32_t x, uint32_t y, uint32_t z, uint32_t bx,
                             uint32_t by, uint32_t bz, size_t shared, void* stream, void** args,
                             void** extra, void* start, void* stop) {
  return hipExtModuleLaunchKernel(function, x, y, z, bx, by, bz, shared, stream, args, extra,
                                  start, stop, 0);
}
const char* hipKernelNameRef(const char* function) {
  return hip_is_function(function) ? std::strchr(function, ':') + 1 : nullptr;
}
const char* hipKernelNameRefByPtr(const void* host, void*) {
  const char* name = hip_kernel_of(host);
  return name ? std::strchr(name, ':') + 1 : nullptr;
}
int hipGetFuncBySymbol(const char** function, const void* host) {
  if (!function) return hip_note(kInvalidValue);
  const char* name = hip_kernel_of(host);
  if (!name) return hip_note(kInvalidDeviceFunction);
  give_function(function, name);
  return hip_note(kSuccess);
}

}  // extern "C"
