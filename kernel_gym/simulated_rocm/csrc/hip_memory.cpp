// HIP host runtime: allocations, and what a program may ask about memory.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "hip_memory.h"

namespace {
struct PointerAttributes {
  int memory_type, device;
  void *device_pointer, *host_pointer;
  int is_managed;
  unsigned flags;
};
// hipMemoryType of HIP 6 counts from memory that HIP does not know.
enum : int { kUnregistered = 0, kHost6 = 1, kDevice6 = 2, kManaged6 = 3, kHost5 = 0, kDevice5 = 1 };
enum : unsigned {
  kHostFlags = 0xe0000007,  // all of hipHostMalloc
  kCoherent = 0x40000000,
  kNonCoherent = 0x80000000,
  kRegisterFlags = 0xf,  // portable, mapped, of devices, read-only
  kAttachGlobal = 1,
  kAttachHost = 2,
};

// What the program has asked for when it allocated or registered memory of the host.
struct HostMemory {
  unsigned flags;
  bool is_managed;
};
std::mutex& host_lock() {
  static auto* lock = new std::mutex;
  return *lock;
}
std::map<uint64_t, HostMemory>& host_memory() {  // by its start
  static auto* table = new std::map<uint64_t, HostMemory>;
  return *table;
}
void note_host(const void* start, unsigned flags, bool is_managed) {
  std::lock_guard<std::mutex> hold(host_lock());
  host_memory()[address_of(start)] = {flags, is_managed};
}
void forget_host(const void* start) {
  std::lock_guard<std::mutex> hold(host_lock());
  host_memory().erase(address_of(start));
}
HostMemory host_memory_at(uint64_t start) {
  std::lock_guard<std::mutex> hold(host_lock());
  const auto entry = host_memory().find(start);
  return entry == host_memory().end() ? HostMemory{0, false} : entry->second;
}

std::atomic<bool (*)(uint64_t, int*)> freed_elsewhere{nullptr};
constexpr size_t kAlignment = 256;

size_t aligned(size_t width) { return (width + kAlignment - 1) / kAlignment * kAlignment; }

// The product of sizes; the largest number, which no memory has, if it has more than 64 bits.
size_t product(size_t a, size_t b) {
  size_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? SIZE_MAX : result;
}

// Whether a range lies in one managed allocation.
bool is_managed_range(const void* pointer, size_t size) {
  uint64_t start = 0, bytes = 0;
  int visible = 0;
  if (!pointer || !size || !gpu().range) return false;
  if (gpu().range(address_of(pointer), &start, &bytes, &visible)) return false;
  return host_memory_at(start).is_managed && is_within(address_of(pointer) - start, size, bytes);
}

}  // namespace

void hip_watch_free(bool (*other)(uint64_t, int*)) { freed_elsewhere = other; }

bool hip_fits(const void* pointer, size_t size) {
  uint64_t start = 0, bytes = 0;
  int visible = 0;
  if (!gpu().range || gpu().range(address_of(pointer), &start, &bytes, &visible)) return true;
  return is_within(address_of(pointer) - start, size, bytes);
}

extern "C" {

// -- allocation ----------------------------------------------------------------------------------

int hipMalloc(void** pointer, size_t size) {
  if (!pointer) return hip_note(kInvalidValue);
  const uint64_t place = size ? gpu().allocate(size) : 0;
  *pointer = reinterpret_cast<void*>(place);
  return hip_note(place || !size ? kSuccess : kOutOfMemory);
}
int hipExtMallocWithFlags(void** pointer, size_t size, unsigned flags) {
  if (flags > 3 || (flags == 2 && size != 8)) return hip_note(kInvalidValue);  // 2: a signal
  return hipMalloc(pointer, size);
}
int hipMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (!pointer || !pitch || width > SIZE_MAX - kAlignment) return hip_note(kInvalidValue);
  *pitch = aligned(width);
  return hipMalloc(pointer, product(*pitch, height));
}
int hipMemAllocPitch(void** pointer, size_t* pitch, size_t width, size_t height, unsigned) {
  return hipMallocPitch(pointer, pitch, width, height);
}
int hipMalloc3D(Pitched* result, Extent extent) {
  if (!result || extent.width > SIZE_MAX - kAlignment) return hip_note(kInvalidValue);
  result->pitch = aligned(extent.width);
  result->x_size = extent.width;
  result->y_size = extent.height;
  return hipMalloc(&result->pointer,
                   product(product(result->pitch, extent.height), extent.depth));
}
int hipFree(void* pointer) {
  int error = kSuccess;
  const auto other = freed_elsewhere.load();
  if (!pointer || (other && other(address_of(pointer), &error))) return hip_note(error);
  return hip_note(gpu().release(address_of(pointer)));
}
// Pinned memory. For candidates it is ordinary memory of the host, which kernels cannot reach.
int hipHostMalloc(void** pointer, size_t size, unsigned flags) {
  if (!pointer || flags & ~kHostFlags) return hip_note(kInvalidValue);
  if (flags & kCoherent && flags & kNonCoherent) return hip_note(kInvalidValue);
  if (gpu().allocate_visible) {
    *pointer = reinterpret_cast<void*>(gpu().allocate_visible(size ? size : 1));
  } else {
    *pointer = std::malloc(size ? size : 1);
  }
  if (*pointer) note_host(*pointer, flags, false);
  return hip_note(*pointer ? kSuccess : kOutOfMemory);
}
int hipHostAlloc(void** pointer, size_t size, unsigned flags) {
  return hipHostMalloc(pointer, size, flags);
}
int hipMemAllocHost(void** pointer, size_t size) { return hipHostMalloc(pointer, size, 0); }
int hipMallocHost(void** pointer, size_t size) { return hipHostMalloc(pointer, size, 0); }
int hipHostFree(void* pointer) {
  if (!pointer) return hip_note(kSuccess);
  uint64_t start = 0, bytes = 0;
  int visible = 0;
  if (gpu().range && gpu().range(address_of(pointer), &start, &bytes, &visible)) visible = 0;
  if (gpu().range && !visible) return hip_note(kInvalidValue);  // hipFree frees device memory
  forget_host(pointer);
  if (gpu().allocate_visible) return hip_note(gpu().release(address_of(pointer)));
  std::free(pointer);
  return hip_note(kSuccess);
}
int hipFreeHost(void* pointer) { return hipHostFree(pointer); }
int hipMallocManaged(void** pointer, size_t size, unsigned flags) {
  if (!pointer || !size) return hip_note(kInvalidValue);
  if (flags != kAttachGlobal && flags != kAttachHost) return hip_note(kInvalidValue);
  if (!gpu().allocate_visible) return hip_note(kNotSupported);
  if (const int wrong = hipHostMalloc(pointer, size, 0)) return wrong;
  note_host(*pointer, flags, true);
  return hip_note(kSuccess);
}
int hipHostRegister(void* pointer, size_t size, unsigned flags) {
  if (!pointer || !size || flags & ~kRegisterFlags) return hip_note(kInvalidValue);
  if (!gpu().share) return hip_note(kSuccess);
  uint64_t place = 0;
  const int status = gpu().share(address_of(pointer), size, &place);
  if (!status) note_host(pointer, flags, false);
  return hip_note(status);
}
int hipHostUnregister(void* pointer) {
  if (!pointer) return hip_note(kInvalidValue);
  forget_host(pointer);
  return hip_note(gpu().unshare ? gpu().unshare(address_of(pointer)) : int{kSuccess});
}
int hipHostGetDevicePointer(void** device_pointer, void* pointer, unsigned flags) {
  if (!device_pointer || !pointer || flags) return hip_note(kInvalidValue);
  if (!gpu().share) return hip_note(kNotSupported);
  uint64_t place = 0;
  const int status = gpu().share(address_of(pointer), 0, &place);
  *device_pointer = reinterpret_cast<void*>(place);
  return hip_note(status);
}
int hipHostGetFlags(unsigned* flags, void* pointer) {
  if (!flags || !pointer) return hip_note(kInvalidValue);
  uint64_t start = 0, bytes = 0;
  int visible = 0;
  if (gpu().range && (gpu().range(address_of(pointer), &start, &bytes, &visible) || !visible)) {
    return hip_note(kInvalidValue);
  }
  *flags = host_memory_at(address_of(pointer)).flags;
  return hip_note(kSuccess);
}
int hipMemGetInfo(size_t* available, size_t* total) {
  const size_t free_bytes = gpu().available ? gpu().available() : device().memory;
  if (available) *available = free_bytes;
  if (total) *total = device().memory;
  return hip_note(kSuccess);
}
int hipMemGetAddressRange(void** base, size_t* size, void* pointer) {
  if (!pointer || (!base && !size)) return hip_note(kInvalidValue);
  uint64_t start = 0, bytes = 0;
  int visible = 0;
  if (!gpu().range || gpu().range(address_of(pointer), &start, &bytes, &visible)) {
    return hip_note(kNotFound);
  }
  if (base) *base = reinterpret_cast<void*>(start);
  if (size) *size = bytes;
  return hip_note(kSuccess);
}
int hipMemPtrGetInfo(void* pointer, size_t* size) {
  return hipMemGetAddressRange(nullptr, size, pointer);
}
int hipPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  if (!attributes || !pointer) return hip_note(kInvalidValue);
  uint64_t start = 0, bytes = 0;
  int visible = 0;
  *attributes = {};
  if (!gpu().range || gpu().range(address_of(pointer), &start, &bytes, &visible)) {
    attributes->memory_type = kUnregistered;
    return hip_note(hip_is_6() ? kSuccess : kInvalidValue);
  }
  const HostMemory host = host_memory_at(visible ? start : 0);
  const int type = host.is_managed ? kManaged6 : visible ? kHost6 : kDevice6;
  attributes->memory_type = hip_is_6() ? type : (visible ? kHost5 : kDevice5);
  attributes->is_managed = host.is_managed;
  attributes->flags = host.flags;
  attributes->device_pointer = const_cast<void*>(pointer);
  if (visible) attributes->host_pointer = const_cast<void*>(pointer);
  return hip_note(kSuccess);
}
int hipMemAdvise(const void* pointer, size_t size, int advice, int ordinal) {
  if (ordinal != 0 && ordinal != -1) return hip_note(kInvalidDevice);  // -1 is the host
  const bool known = (advice >= 1 && advice <= 6) || advice == 100 || advice == 101;
  return hip_note(known && is_managed_range(pointer, size) ? kSuccess : kInvalidValue);
}
int hipMemPrefetchAsync(const void* pointer, size_t size, int ordinal, void* stream) {
  if (!is_managed_range(pointer, size)) return hip_note(kInvalidValue);
  if (ordinal != 0 && ordinal != -1) return hip_note(kInvalidDevice);  // -1 is the host
  return hip_check_stream(stream);
}
int hipStreamAttachMemAsync(void* stream, void*, size_t, unsigned) {
  return hip_check_stream(stream);
}

}  // extern "C"
