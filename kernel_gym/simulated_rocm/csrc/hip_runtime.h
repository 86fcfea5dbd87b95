// Declarations for the source files of the HIP host runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "hip_process.h"

struct Dim3 {
  uint32_t x, y, z;
};

inline constexpr char kUuid[] = "kernel-gym-sim-0";  // 16 bytes of the only device

Callbacks& gpu();       // brings the device up at the first call
const Device& device();
int hip_note(int error);  // remembers the end of a call for hipGetLastError
const char* hip_kernel_of(const void* host);  // null: no such kernel
int hip_launch(const char* kernel, Dim3 grid, Dim3 block, void** args, size_t shared,
               const void* stream, uint64_t packed = 0);
int hip_find_variable(const void* symbol, uint64_t* place, uint64_t* size);

// The major version of the runtime that the program was linked with: 5, 6 or 7.
int hip_major();
inline bool hip_is_6() { return hip_major() >= 6; }  // some enumerations of HIP 5 are others
bool hip_is_function(const char* kernel);  // whether it is a live hipFunction_t
bool hip_can_capture();                    // not for candidates
bool hip_is_captured(const void* stream);  // whether work of a stream is recorded now
// Does work of a stream, or records it.
// `type` is that of the graph's node that a capture records.
int hip_queue(const void* stream, std::function<int()> work, int type = 1);
// Copies the arguments of a launch, for a graph; returns an error, which it does not note.
int hip_recorded_launch(const char* kernel, Dim3 grid, Dim3 block, void** args, size_t shared,
                        uint64_t packed, std::function<int()>* work);
struct Copy3D;
std::function<int()> hip_recorded_copy(const Copy3D* copy);
bool hip_is_event(const void* event);
int hip_check_stream(const void* stream);  // kInvalidHandle, noted, if there is no such stream

// Stores the result of a query, if there is a place for it.
template <class T>
int hip_store(T* place, T value) {
  if (!place) return hip_note(kInvalidValue);
  *place = value;
  return hip_note(kSuccess);
}

inline uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
