// Declarations for both source files of the HIP runtime for candidates. Building it does not need
// the HIP headers: the types here follow the ABI of HIP 5 and 6.
#pragma once

#include <cstddef>
#include <cstdint>

enum : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidSymbol = 13,
  kInvalidDeviceFunction = 98,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kNotFound = 500,
  kNotReady = 600,
  kLaunchFailure = 719,
  kNotSupported = 801,
};

struct Dim3 {
  uint32_t x, y, z;
};

// The resources of a kernel, and how many of its workgroups fit on a compute unit.
struct KernelFacts {
  int registers, lds, scratch, max_threads, workgroups_per_unit;
};

// Mirrored by kernel_gym/worker/hip/connection.py. A kernel is named `module:name`; module 0 is the source.
struct Callbacks {
  int (*launch)(const char* kernel, const uint32_t* grid, const uint32_t* block, void** args,
                uint64_t shared, uint64_t packed_size);
  uint64_t (*allocate)(uint64_t size);
  int (*release)(uint64_t address);
  int (*copy)(uint64_t target, uint64_t source, uint64_t size, int kind);
  int (*fill)(uint64_t target, uint32_t value, uint64_t count, int width);
  double (*clock)();
  int (*facts)(const char* kernel, uint64_t threads, uint64_t shared, KernelFacts* found);
  int (*variable)(const char* variable, uint64_t* address, uint64_t* size);
  int (*module)(const void* image, const char* path);  // a number above 0, or 0
};

// Properties of the device: clocks in kHz, sizes in bytes. Mirrored by connection.py.
struct Device {
  char name[64], arch[64];
  int gcn_arch, minor, units, l2, clock, memory_clock, bus;
  size_t memory, lds;
};

extern Callbacks hip_callbacks;
extern Device hip_device;
int hip_note(int error);  // remembers an error for hipGetLastError
const char* hip_kernel_of(const void* host);  // null: no such kernel
