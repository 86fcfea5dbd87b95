// HIP host runtime: the device that it has, and the errors that it remembers.
#include <mutex>

#include "hip_streams.h"

namespace {

Callbacks callbacks;
Device described;
bool connected;
thread_local int last_error = kSuccess;

std::recursive_mutex& start_lock() {
  static auto* lock = new std::recursive_mutex;
  return *lock;
}

void connect(const Callbacks& given, const Device& device) {
  callbacks = given;
  described = device;
  connected = true;
}

void start_process() {
  std::lock_guard<std::recursive_mutex> hold(start_lock());
  if (connected) return;
  Device device;
  const Callbacks given = hip_start_process(&device);
  connect(given, device);
}

}  // namespace

Callbacks& gpu() {
  if (!connected) start_process();
  return callbacks;
}
const Device& device() {
  gpu();
  return described;
}

// Until ROCm 6 each call replaces the last error, also one that succeeds. ROCm 7 keeps an error
// until it is read.
int hip_note(int error) {
  if (error != kSuccess || hip_major() < 7) last_error = error;
  return error;
}

int hip_check_stream(const void* stream) {
  const bool live = hip_is_default(stream) || handles<Stream>().has(stream);
  return hip_note(live ? kSuccess : kDestroyed);
}

bool hip_can_capture() { return gpu().allocate_visible; }

extern "C" {

void kernel_gym_hip_connect(const Callbacks* given, const Device* device) {
  connect(*given, *device);
}

int hipGetLastError() {
  int error = last_error;
  last_error = kSuccess;
  return error;
}
int hipExtGetLastError() { return hipGetLastError(); }
int hipPeekAtLastError() { return last_error; }

}  // extern "C"
