// What the parts of a simulated GPU in a child process share: its state and the messages to it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hip_process.h"

namespace hip_process {

constexpr uint64_t kBase = 0x200000000000, kSize = 64ull << 30;  // devices/sim/memory.py

// Numbers of requests; mirrored by simulated_rocm/server.py.
enum Request : uint32_t {
  kAllocate = 1,
  kRelease,
  kModule,
  kKernel,
  kOccupancy,
  kVariable,
  kLaunch,
  kCharge,
  kClock,
  kMissing,
  kEnd,
  kAvailable,
};

struct Range {
  uint64_t size;
  bool visible;
};
struct Argument {
  uint32_t offset, size;
};
struct Kernel {
  int status = kSuccess;
  int registers = 0, lds = 0, scratch = 0, max_threads = 0;
  std::vector<Argument> arguments;
};
// Memory of the host that kernels may use: its pages became pages of the device.
struct Shared {
  uint64_t start, pages, place, allocation;
};

struct State {
  std::recursive_mutex lock;
  int socket = -1, file = -1;
  pid_t owner = -1;
  char* view = nullptr;  // all device memory, with access rights
  bool faulty = false, ended = false;
  int error = kSuccess;  // of a launch that has failed; it stays
  std::map<uint64_t, Range> ranges;
  std::map<uint64_t, Shared> shared;
  std::map<std::string, Kernel> kernels;
  std::set<std::string> missing;
};
State& state();
using Lock = std::lock_guard<std::recursive_mutex>;

// Ends the program, as the simulated GPU does not start.
[[noreturn]] void give_up(const std::string& why);

// hip_process_messages.cpp

inline void put(std::string& out, const void* data, size_t size) {
  out.append(static_cast<const char*>(data), size);
}
template <class T>
void put(std::string& out, T value) {
  put(out, &value, sizeof value);
}

struct Answer {
  int32_t status = kSuccess;
  std::string body;
  size_t place = 0;
  template <class T>
  T take() {
    T value = {};
    if (place + sizeof value <= body.size()) std::memcpy(&value, body.data() + place, sizeof value);
    place += sizeof value;
    return value;
  }
};

bool receive_all(char* data, size_t size);
void tell(Request request, const std::string& body);  // without an answer
Answer ask(Request request, const std::string& body);

// hip_process_memory.cpp: see Callbacks

uint64_t allocate_on_device(uint64_t size);
uint64_t allocate_visible(uint64_t size);
int release(uint64_t address);
int copy(uint64_t target, uint64_t source, uint64_t size, int);
int fill_memory(uint64_t target, uint32_t value, uint64_t count, int width);
int range(uint64_t address, uint64_t* start, uint64_t* size, int* visible);
int share_pages(uint64_t host, uint64_t size, uint64_t* address);
int unshare_pages(uint64_t host);
uint64_t available();

// hip_process_kernels.cpp: see Callbacks

int pack(const char* name, void** args, uint64_t packed, std::string* segment);
int launch(const char* name, const uint32_t* grid, const uint32_t* block, void** args,
           uint64_t shared, uint64_t packed);
int facts(const char* name, uint64_t threads, uint64_t shared, KernelFacts* result);
int variable(const char* name, uint64_t* address, uint64_t* size);
int module(const void* image, const char* path);
int synchronize();

}  // namespace hip_process
