// The simulated GPU of a program: what it does for the runtime, and how a program that is not Python
// starts one. Building it does not need the HIP headers: the types follow the ABI of HIP 5 and 6.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

enum : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidConfiguration = 9,
  kInvalidPitch = 12,
  kInvalidSymbol = 13,
  kInvalidDirection = 21,
  kInvalidDeviceFunction = 98,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kFileNotFound = 301,
  kOperatingSystem = 304,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kDestroyed = 709,
  kAlreadyRegistered = 712,
  kNotRegistered = 713,
  kLaunchFailure = 719,
  kCooperativeTooLarge = 720,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kGraphExecUpdateFailure = 910,
};

// The resources of a kernel, and how many of its workgroups fit on a compute unit.
struct KernelFacts {
  int registers, lds, scratch, max_threads, workgroups_per_unit;
};

// What a simulated GPU does for this runtime. In a Python process kernel_gym/worker/hip/connection.py
// gives these functions and mirrors the structure; in any other program hip_process.cpp does. A
// kernel is named `module:name`.
struct Callbacks {
  int (*launch)(const char* kernel, const uint32_t* grid, const uint32_t* block, void** args,
                uint64_t shared, uint64_t packed_size);
  uint64_t (*allocate)(uint64_t size);
  int (*release)(uint64_t address);
  int (*copy)(uint64_t target, uint64_t source, uint64_t size, int kind);
  int (*fill)(uint64_t target, uint32_t value, uint64_t count, int width);
  double (*clock)();
  int (*facts)(const char* kernel, uint64_t threads, uint64_t shared, KernelFacts* result);
  int (*variable)(const char* variable, uint64_t* address, uint64_t* size);
  int (*module)(const void* image, const char* path);  // a number above 0, or 0
  int (*synchronize)();                                // the error of a launch that has failed
  // The rest is null where kernels cannot reach memory of the host.
  uint64_t (*allocate_visible)(uint64_t size);  // host code may use the address too
  int (*range)(uint64_t address, uint64_t* start, uint64_t* size, int* visible);
  int (*share)(uint64_t host, uint64_t size, uint64_t* address);  // hipHostRegister
  int (*unshare)(uint64_t host);
  uint64_t (*available)();                     // bytes
  void (*missing)(const char* api);            // a call that is not simulated
};

// Properties of the device: clocks in kHz, sizes in bytes. Mirrored by connection.py.
struct Device {
  char name[64], arch[64];
  int gcn_arch, minor, units, l2, clock, memory_clock, bus;
  size_t memory, lds;
};

// Starts a simulated GPU in a child process, or ends the program.
Callbacks hip_start_process(Device* device);
// The arguments of a launch, laid out as the kernel's segment. Only with that process.
int hip_pack(const char* kernel, void** args, std::string* segment);
std::string hip_compiler();            // the path of hipcc
void* hip_function(const char* name);  // a function of the runtime, or null
