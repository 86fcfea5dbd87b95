// HIP host runtime: the calls that only query something.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "hip_runtime.h"

namespace {

constexpr int kWarp = 64, kMostThreads = 1024, kThreadsPerUnit = 2048, kMostBlocksPerUnit = 32;

// hipDeviceProp_t of HIP 5; its head is the same in older ones.
struct Properties {
  char name[256];
  size_t total_memory, shared_per_block;
  int registers_per_block, warp_size, max_threads_per_block;
  int max_threads[3], max_grid[3];
  int clock_khz, memory_clock_khz, memory_bus_bits;
  size_t constant_memory;
  int major, minor, compute_units, l2_bytes, max_threads_per_unit;
  int compute_mode, clock_instruction_khz;
  unsigned features;
  int concurrent_kernels, pci_domain, pci_bus, pci_device;
  size_t shared_per_unit;
  int multi_gpu_board, can_map_host, gcn_arch;
  char gcn_arch_name[256];
  int integrated, cooperative, multi_device_cooperative, textures[7];
  unsigned *flush_memory, *flush_registers;
  size_t most_pitch, texture_alignment, texture_pitch_alignment;
  int timeout, ecc, tcc_driver, unmatched[4], large_bar, revision;
  int managed, direct_managed, concurrent_managed, pageable, page_tables;
};
static_assert(sizeof(Properties) == 792, "the size of HIP 5's hipDeviceProp_t");
// hipDeviceProp_t of HIP 6 (the symbol carries its revision) is another structure.

// Whether host and device share memory: not in a candidate's worker.
int has_managed() { return gpu().allocate_visible != nullptr; }

// Numbers of hipDeviceAttribute_t.
int attribute(int number, int* value) {
  switch (number) {
    case 5: *value = device().clock; break;
    case 0: case 3: case 85: *value = 1; break;  // ECC, mapped host memory, one address space
    case 8: case 10: *value = 1; break;  // concurrent kernels, cooperative launch
    case 6: case 16: *value = 0; break;  // compute mode, integrated
    case 9: case 15: case 24: *value = has_managed(); break;  // its atomics, and beside the host
    case 19: *value = device().l2; break;
    case 23: *value = 9; break;
    case 26: case 27: case 28: case 56: *value = kMostThreads; break;
    case 29: case 30: case 31: *value = 2147483647; break;
    case 57: *value = kThreadsPerUnit; break;
    case 58: *value = 2147483647; break;  // pitch
    case 59: *value = device().bus; break;
    case 60: *value = device().memory_clock; break;
    case 61: *value = 4; break;
    case 63: *value = device().units; break;
    case 4: case 90: *value = gpu().share != nullptr; break;  // registered memory
    case 12: case 78: case 88: *value = 1; break;  // copies beside kernels, priorities, pools
    case 25: *value = kMostBlocksPerUnit; break;
    case 55: *value = kMostThreads; break;
    case 71: case 72: *value = 65536; break;  // registers of block and unit
    case 74: case 75: case 76: case 10002:  // LDS of block and unit
      *value = static_cast<int>(device().lds);
      break;
    case 83: *value = 2147483647; break;
    case 84: *value = static_cast<int>(std::min<size_t>(device().memory, 2147483647)); break;
    case 87: *value = kWarp; break;
    case 10000: case 10017: *value = 100000; break;  // clocks of kernels, in kHz
    case 10001: *value = 0x1ffff; break;  // features
    case 10003: *value = device().gcn_arch; break;
    case 10015: *value = device().units; break;
    case 10016: *value = has_managed(); break;  // fine-grained memory
    case 21: case 22: case 64: case 86: return kInvalidValue;  // names, which are no numbers
    default:  // the rest are features that this device lacks, such as textures
      if (number < 0 || (number > 91 && number < 10000) || number > 10017) return kInvalidValue;
      *value = 0;
  }
  return hip_note(kSuccess);
}

int occupancy(int* blocks, const char* kernel, int threads, size_t shared) {
  if (!blocks) return kInvalidValue;
  if (!kernel) return kInvalidDeviceFunction;
  if (threads < 1 || threads > kMostThreads) return kInvalidValue;
  KernelFacts facts = {};
  const int status = gpu().facts(kernel, threads, shared, &facts);
  *blocks = facts.lds + shared > device().lds || threads > facts.max_threads ? 0 : facts.workgroups_per_unit;
  return status;
}

// The largest multiple of a wave that keeps most threads resident, and a grid that fills the GPU.
int potential(int* grid, int* block, const char* kernel, size_t shared, int limit) {
  if (!grid || !block) return kInvalidValue;
  if (!kernel) return kInvalidDeviceFunction;
  int best = 0;
  const int most = limit > 0 ? std::min(limit, kMostThreads) : kMostThreads;
  for (int threads = kWarp; threads <= most; threads += kWarp) {
    int blocks = 0;
    const int status = occupancy(&blocks, kernel, threads, shared);
    if (status) return status;
    if (blocks * threads < best) continue;
    best = blocks * threads;
    *block = threads;
    *grid = blocks * device().units;
  }
  return best ? kSuccess : kInvalidValue;
}

// The kernel of a hipFunction_t that a program gives; null if there is none.
const char* live(const char* kernel) { return hip_is_function(kernel) ? kernel : nullptr; }

// Both versions of the properties have these fields, at other places.
template <typename T>
T common_properties() {
  T answer = {};
  std::strcpy(answer.name, device().name);
  std::strcpy(answer.gcn_arch_name, device().arch);
  answer.total_memory = device().memory;
  answer.warp_size = kWarp;
  answer.most_pitch = 2147483647;
  answer.max_threads_per_block = kMostThreads;
  answer.clock_khz = device().clock;
  answer.memory_clock_khz = device().memory_clock;
  answer.memory_bus_bits = device().bus;
  answer.clock_instruction_khz = 100000;
  answer.constant_memory = 2147483647;
  answer.major = 9;
  answer.minor = device().minor;
  answer.compute_units = device().units;
  answer.l2_bytes = device().l2;
  answer.max_threads_per_unit = kThreadsPerUnit;
  answer.features = 0x1ffff;
  answer.shared_per_block = answer.shared_per_unit = device().lds;
  for (int& n : answer.max_threads) n = kMostThreads;
  for (int& n : answer.max_grid) n = 2147483647;
  return answer;
}

}  // namespace

extern "C" {

int hipInit(unsigned flags) { return hip_note(flags ? kInvalidValue : kSuccess); }
int hipGetDeviceCount(int* count) {
  gpu();  // a program that asks gets its device, or the reason why there is none
  return hip_store(count, 1);
}
int hipGetDevice(int* device) { return hip_store(device, 0); }
int hipSetDevice(int ordinal) { return hip_note(ordinal == 0 ? kSuccess : kInvalidDevice); }
int hipDeviceGet(int* device, int ordinal) {
  return hipSetDevice(ordinal) ?: hip_store(device, 0);
}
int hipDeviceGetName(char* name, int length, int ordinal) {
  if (const int wrong = hipSetDevice(ordinal)) return wrong;
  if (!name || length <= 0) return hip_note(kInvalidValue);
  std::snprintf(name, length, "%s", device().name);
  return hip_note(kSuccess);
}
int hipDeviceTotalMem(size_t* bytes, int ordinal) {
  return hipSetDevice(ordinal) ?: hip_store(bytes, device().memory);
}
int hipDriverGetVersion(int* version) { return hip_store(version, 60000000); }
int hipRuntimeGetVersion(int* version) { return hipDriverGetVersion(version); }
// The status is 0 for a function of this runtime and 1 for a name that it lacks.
int hipGetProcAddress(const char* name, void** function, int, uint64_t, int* status) {
  if (!name || !function) return hip_note(kInvalidValue);
  *function = hip_function(name);
  if (status) *status = *function ? 0 : 1;
  return hip_note(*function ? kSuccess : kNotFound);
}
int hipDeviceGetAttribute(int* value, int number, int ordinal) {
  if (!value) return hip_note(kInvalidValue);
  return hip_note(ordinal == 0 ? attribute(number, value) : kInvalidDevice);
}
int hipDeviceSetCacheConfig(int config) {
  return hip_note(config >= 0 && config <= 3 ? kSuccess : kInvalidValue);
}
int hipDeviceSetSharedMemConfig(int config) {
  return hip_note(config >= 0 && config <= 2 ? kSuccess : kInvalidValue);
}
int hipDeviceReset() { return hip_note(kSuccess); }
int hipSetDeviceFlags(unsigned flags) {
  const unsigned schedule = flags & 7;  // auto, spin, yield or blocking
  const bool known = !(flags & ~0x1fu) && (schedule & (schedule - 1)) == 0;
  return hip_note(known ? kSuccess : kInvalidValue);
}
int hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  for (int* place : {least, greatest}) {
    if (place) *place = 0;  // a program may want only one of them
  }
  return hip_note(kSuccess);
}
int hipGetDeviceProperties(Properties* properties, int ordinal) {
  if (!properties) return hip_note(kInvalidValue);
  if (ordinal != 0) return hip_note(kInvalidDevice);
  Properties answer = common_properties<Properties>();
  answer.registers_per_block = 65536;
  answer.gcn_arch = device().gcn_arch;
  answer.concurrent_kernels = answer.cooperative = answer.can_map_host = answer.ecc = 1;
  answer.managed = answer.concurrent_managed = has_managed();
  std::memcpy(properties, &answer, sizeof answer);
  return hip_note(kSuccess);
}

int hipGetDevicePropertiesR0000(Properties* properties, int ordinal) {
  return hipGetDeviceProperties(properties, ordinal);
}

// hipDeviceProp_t of HIP 6.
struct PropertiesR0600 {
  char name[256], uuid[16], luid[8];
  unsigned luid_node_mask;
  size_t total_memory, shared_per_block;
  int registers_per_block, warp_size;
  size_t most_pitch;
  int max_threads_per_block, max_threads[3], max_grid[3], clock_khz;
  size_t constant_memory;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int overlap, compute_units, timeout, integrated, can_map_host, compute_mode;
  int textures[26], surfaces[14];
  size_t surface_alignment;
  int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc_driver, engines, unified;
  int memory_clock_khz, memory_bus_bits, l2_bytes, persisting_l2, max_threads_per_unit;
  int priorities, global_l1, local_l1;
  size_t shared_per_unit;
  int registers_per_unit, managed, multi_gpu_board, board_group, native_atomics, double_ratio;
  int pageable, concurrent_managed, preemption, host_pointers, cooperative, cooperative_devices;
  size_t shared_per_block_optin;
  int page_tables, direct_managed, most_blocks_per_unit, policy_window;
  size_t shared_reserved;
  int host_register, sparse_arrays, read_only_register, semaphores, pools, rdma;
  unsigned rdma_flush;
  int rdma_order;
  unsigned pool_handles;
  int deferred_arrays, ipc_events, clusters, function_pointers, reserved[63], hip_reserved[32];
  char gcn_arch_name[256];
  size_t most_shared_per_unit;
  int clock_instruction_khz;
  unsigned features;
  unsigned *flush_memory, *flush_registers;
  int unmatched[4], large_bar, revision;
};
int hipGetDevicePropertiesR0600(PropertiesR0600* properties, int ordinal) {
  if (!properties) return hip_note(kInvalidValue);
  if (ordinal != 0) return hip_note(kInvalidDevice);
  PropertiesR0600 answer = common_properties<PropertiesR0600>();
  answer.shared_per_block_optin = answer.most_shared_per_unit = device().lds;
  answer.registers_per_block = answer.registers_per_unit = 65536;
  answer.most_blocks_per_unit = kMostBlocksPerUnit;
  answer.unified = answer.concurrent_kernels = answer.cooperative = 1;
  answer.managed = answer.concurrent_managed = answer.native_atomics = has_managed();
  answer.can_map_host = answer.host_register = answer.pools = answer.ecc = 1;
  std::memcpy(answer.uuid, kUuid, sizeof answer.uuid);
  std::memcpy(properties, &answer, sizeof answer);
  return hip_note(kSuccess);
}

struct ChannelFormat {
  int x, y, z, w, kind;
};
ChannelFormat hipCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return {x, y, z, w, kind};
}

// -- kernels ---------------------------------------------------------------------------------------

struct FunctionAttributes {
  int binary_version, cache_mode;
  size_t constant_bytes, local_bytes;
  int max_dynamic_shared, max_threads, registers, carveout, ptx_version;
  size_t shared_bytes;
};
int hipFuncGetAttributes(FunctionAttributes* attributes, const void* host) {
  if (!attributes) return hip_note(kInvalidValue);
  const char* name = hip_kernel_of(host);
  KernelFacts facts = {};
  if (!name || gpu().facts(name, kWarp, 0, &facts)) return hip_note(kInvalidDeviceFunction);
  *attributes = {};
  attributes->binary_version = attributes->ptx_version = 90 + device().minor;
  attributes->local_bytes = facts.scratch;
  attributes->shared_bytes = facts.lds;
  attributes->max_dynamic_shared = static_cast<int>(device().lds) - facts.lds;
  attributes->max_threads = facts.max_threads;
  attributes->registers = facts.registers;
  return hip_note(kSuccess);
}
int hipFuncSetAttribute(const void* host, int attribute, int value) {
  if (!hip_kernel_of(host)) return hip_note(kInvalidDeviceFunction);
  if (attribute == 8) return hip_note(value >= 0 ? kSuccess : kInvalidValue);  // dynamic LDS
  return hip_note(attribute == 9 && value >= -1 && value <= 100 ? kSuccess : kInvalidValue);
}
int hipFuncSetCacheConfig(const void* host, int config) {
  if (!hip_kernel_of(host)) return hip_note(kInvalidDeviceFunction);
  return hip_note(config >= 0 && config <= 3 ? kSuccess : kInvalidValue);
}
int hipFuncSetSharedMemConfig(const void*, int) { return hip_note(kSuccess); }

int hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int threads,
                                                 size_t shared) {
  return hip_note(occupancy(blocks, hip_kernel_of(host), threads, shared));
}
int hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host,
                                                          int threads, size_t shared, unsigned) {
  return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, host, threads, shared);
}
int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const char* kernel,
                                                       int threads, size_t shared) {
  return hip_note(occupancy(blocks, live(kernel), threads, shared));
}
int hipOccupancyMaxPotentialBlockSize(int* grid, int* block, const void* host, size_t shared,
                                      int limit) {
  return hip_note(potential(grid, block, hip_kernel_of(host), shared, limit));
}
int hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const char* kernel,
                                                                int threads, size_t shared,
                                                                unsigned) {
  return hip_note(occupancy(blocks, live(kernel), threads, shared));
}
int hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block, const char* kernel,
                                            size_t shared, int limit) {
  return hip_note(potential(grid, block, live(kernel), shared, limit));
}
int hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, const char* kernel,
                                                     size_t shared, int limit, unsigned) {
  return hip_note(potential(grid, block, live(kernel), shared, limit));
}
// Numbers of hipFunction_attribute.
int hipFuncGetAttribute(int* value, int number, const char* kernel) {
  if (!value) return hip_note(kInvalidValue);
  if (!hip_is_function(kernel)) return hip_note(kInvalidHandle);
  KernelFacts facts = {};
  if (gpu().facts(kernel, kWarp, 0, &facts)) return hip_note(kInvalidDeviceFunction);
  switch (number) {
    case 0: *value = facts.max_threads; break;
    case 1: *value = facts.lds; break;
    case 3: *value = facts.scratch; break;
    case 4: *value = facts.registers; break;
    case 5: case 6: *value = 90 + device().minor; break;
    case 8: *value = static_cast<int>(device().lds) - facts.lds; break;
    default: *value = 0;
  }
  return hip_note(kSuccess);
}

}  // extern "C"
