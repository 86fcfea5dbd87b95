// HIP host runtime: memory, and the variables of a program.
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "hip_handles.h"
#include "hip_runtime.h"

struct Pitched {
  void* pointer;
  size_t pitch, x_size, y_size;
};
struct Extent {
  size_t width, height, depth;
};
struct Position {
  size_t x, y, z;
};
struct Copy3D {
  void* source_array;
  Position source_place;
  Pitched source;
  void* target_array;
  Position target_place;
  Pitched target;
  Extent extent;
  int kind;
};

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

enum : int { kAlignment = 256, kDefaultKind = 4, kDirectKind = 1024 };

// What a program has set for a pool. It changes nothing, and is there when it is read.
struct Pool {
  int reuse[3] = {1, 1, 1};
  uint64_t threshold = 0;
};
Pool pool_of_its_own;  // that of the device
bool is_pool(const void* pool) {
  return pool == &pool_of_its_own || handles<Pool>().has(pool);
}
Pool& pool_of(void* pool) { return *static_cast<Pool*>(pool); }

size_t aligned(size_t width) { return (width + kAlignment - 1) / kAlignment * kAlignment; }

// The product of sizes; the largest number, which no memory has, if it has more than 64 bits.
size_t product(size_t a, size_t b) {
  size_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? SIZE_MAX : result;
}
bool is_within(size_t offset, size_t size, size_t room) {
  return offset <= room && size <= room - offset;
}

// Whether a range lies in one managed allocation.
bool is_managed_range(const void* pointer, size_t size) {
  uint64_t start = 0, bytes = 0;
  int visible = 0;
  if (!pointer || !size || !gpu().range) return false;
  if (gpu().range(address_of(pointer), &start, &bytes, &visible)) return false;
  return host_memory_at(start).is_managed && is_within(address_of(pointer) - start, size, bytes);
}

const char* at(const Pitched& plane, const Position& place, size_t y, size_t z) {
  return static_cast<const char*>(plane.pointer) +
         ((place.z + z) * plane.y_size + place.y + y) * plane.pitch + place.x;
}

}  // namespace

extern "C" {

// -- allocation ----------------------------------------------------------------------------------

int hipMalloc(void** pointer, size_t size) {
  if (!pointer) return hip_note(kInvalidValue);
  const uint64_t place = size ? gpu().allocate(size) : 0;
  *pointer = reinterpret_cast<void*>(place);
  return hip_note(place || !size ? kSuccess : kOutOfMemory);
}
int hipMallocAsync(void** pointer, size_t size, void* stream) {
  return hip_check_stream(stream) ?: hipMalloc(pointer, size);
}
int hipMallocFromPoolAsync(void** pointer, size_t size, void*, void* stream) {
  return hipMallocAsync(pointer, size, stream);
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
  return pointer ? hip_note(gpu().release(address_of(pointer))) : kSuccess;
}
int hipFreeAsync(void* pointer, void* stream) {
  if (!pointer) return hip_note(kInvalidValue);
  return hip_check_stream(stream) ?: hipFree(pointer);
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
  if (!pointer) return kSuccess;
  uint64_t start = 0, bytes = 0;
  int visible = 0;
  if (gpu().range && gpu().range(address_of(pointer), &start, &bytes, &visible)) visible = 0;
  if (gpu().range && !visible) return hip_note(kInvalidValue);  // hipFree frees device memory
  forget_host(pointer);
  if (gpu().allocate_visible) return hip_note(gpu().release(address_of(pointer)));
  std::free(pointer);
  return kSuccess;
}
int hipFreeHost(void* pointer) { return hipHostFree(pointer); }
int hipMallocManaged(void** pointer, size_t size, unsigned flags) {
  if (!pointer || !size) return hip_note(kInvalidValue);
  if (flags != kAttachGlobal && flags != kAttachHost) return hip_note(kInvalidValue);
  if (!gpu().allocate_visible) return hip_note(kNotSupported);
  if (const int wrong = hipHostMalloc(pointer, size, 0)) return wrong;
  note_host(*pointer, flags, true);
  return kSuccess;
}
int hipHostRegister(void* pointer, size_t size, unsigned flags) {
  if (!pointer || !size || flags & ~kRegisterFlags) return hip_note(kInvalidValue);
  if (!gpu().share) return kSuccess;
  uint64_t place = 0;
  const int status = gpu().share(address_of(pointer), size, &place);
  if (!status) note_host(pointer, flags, false);
  return hip_note(status);
}
int hipHostUnregister(void* pointer) {
  if (!pointer) return hip_note(kInvalidValue);
  forget_host(pointer);
  return gpu().unshare ? hip_note(gpu().unshare(address_of(pointer))) : kSuccess;
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
  return kSuccess;
}
int hipMemGetInfo(size_t* available, size_t* total) {
  const size_t free_bytes = gpu().available ? gpu().available() : device().memory;
  if (available) *available = free_bytes;
  if (total) *total = device().memory;
  return kSuccess;
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
  return kSuccess;
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
  return kSuccess;
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

// -- pools: allocations of a stream happen at once -------------------------------------------------

int hipDeviceGetDefaultMemPool(void** pool, int ordinal) {
  if (!pool) return hip_note(kInvalidValue);
  if (ordinal) return hip_note(kInvalidDevice);
  *pool = &pool_of_its_own;
  return kSuccess;
}
int hipDeviceGetMemPool(void** pool, int ordinal) {
  return ordinal ? hip_note(kInvalidValue) : hipDeviceGetDefaultMemPool(pool, ordinal);
}
int hipDeviceSetMemPool(int ordinal, void* pool) {
  return hip_note(!ordinal && is_pool(pool) ? kSuccess : kInvalidValue);
}
int hipMemPoolCreate(void** pool, const void* properties) {
  if (!properties) return hip_note(kInvalidValue);
  if (!pool) return hip_note(kInvalidValue);
  *pool = handles<Pool>().add({});
  return kSuccess;
}
int hipMemPoolDestroy(void* pool) {  // the pool of the device stays
  return hip_note(handles<Pool>().remove(pool) ? kSuccess : kInvalidValue);
}
int hipMemPoolTrimTo(void* pool, size_t) {
  return hip_note(is_pool(pool) ? kSuccess : kInvalidValue);
}
int hipMemPoolSetAttribute(void* pool, int attribute, void* value) {
  if (!is_pool(pool) || !value || attribute < 1 || attribute > 8) return hip_note(kInvalidValue);
  Pool& settings = pool_of(pool);
  if (attribute == 4) std::memcpy(&settings.threshold, value, 8);
  if (attribute < 4) std::memcpy(&settings.reuse[attribute - 1], value, 4);
  return kSuccess;
}
int hipMemPoolGetAttribute(void* pool, int attribute, void* value) {
  if (!is_pool(pool) || !value || attribute < 1 || attribute > 8) return hip_note(kInvalidValue);
  const Pool& settings = pool_of(pool);
  if (attribute < 4) {
    std::memcpy(value, &settings.reuse[attribute - 1], 4);
  } else {  // nothing is counted: allocations of a stream are those of the device
    const uint64_t number = attribute == 4 ? settings.threshold : 0;
    std::memcpy(value, &number, 8);
  }
  return kSuccess;
}
int hipMemPoolSetAccess(void* pool, const void* list, size_t count) {
  return hip_note(is_pool(pool) && list && count ? kSuccess : kInvalidValue);
}

// -- copies and fills ----------------------------------------------------------------------------

int hipMemcpy(void* target, const void* source, size_t size, int kind) {
  if ((kind < 0 || kind > kDefaultKind) && kind != kDirectKind) return hip_note(kInvalidDirection);
  if (!size) return kSuccess;
  return hip_note(gpu().copy(address_of(target), address_of(source), size, kind));
}
int hipMemcpy_spt(void* target, const void* source, size_t size, int kind) {
  return hipMemcpy(target, source, size, kind);
}
int hipMemcpyAsync(void* target, const void* source, size_t size, int kind, void* stream) {
  return hip_queue(stream, [=] { return hipMemcpy(target, source, size, kind); });
}
int hipMemcpyWithStream(void* target, const void* source, size_t size, int kind, void* stream) {
  return hip_queue(stream, [=] { return hipMemcpy(target, source, size, kind); });
}
int hipMemcpyHtoD(void* target, void* source, size_t size) {
  return hipMemcpy(target, source, size, 1);
}
int hipMemcpyHtoDAsync(void* target, void* source, size_t size, void* stream) {
  return hip_queue(stream, [=] { return hipMemcpy(target, source, size, 1); });
}
int hipMemcpyDtoH(void* target, void* source, size_t size) {
  return hipMemcpy(target, source, size, 2);
}
int hipMemcpyDtoHAsync(void* target, void* source, size_t size, void* stream) {
  return hip_queue(stream, [=] { return hipMemcpy(target, source, size, 2); });
}
int hipMemcpyDtoD(void* target, void* source, size_t size) {
  return hipMemcpy(target, source, size, 3);
}
int hipMemcpyDtoDAsync(void* target, void* source, size_t size, void* stream) {
  return hip_queue(stream, [=] { return hipMemcpy(target, source, size, 3); });
}
int hipMemcpyPeer(void* target, int, const void* source, int, size_t size) {
  return hipMemcpy(target, source, size, 3);
}
int hipMemcpyPeerAsync(void* target, int, const void* source, int, size_t size, void* stream) {
  return hip_queue(stream, [=] { return hipMemcpy(target, source, size, 3); });
}
int hipMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                size_t width, size_t height, int kind) {
  if ((kind < 0 || kind > kDefaultKind) && kind != kDirectKind) return hip_note(kInvalidDirection);
  if (!target || !source) return hip_note(kInvalidValue);
  if (width > target_pitch || width > source_pitch) return hip_note(kInvalidPitch);
  for (size_t row = 0; row < height; row++) {
    const int status = hipMemcpy(static_cast<char*>(target) + row * target_pitch,
                                 static_cast<const char*>(source) + row * source_pitch, width, kind);
    if (status) return status;
  }
  return kSuccess;
}
int hipMemcpy2DAsync(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                     size_t width, size_t height, int kind, void* stream) {
  return hip_queue(stream, [=] {
    return hipMemcpy2D(target, target_pitch, source, source_pitch, width, height, kind);
  });
}
int hipMemcpy3D(const Copy3D* copy) {
  if (!copy) return hip_note(kInvalidValue);
  if (copy->source_array || copy->target_array) {
    gpu().missing ? gpu().missing("hipMemcpy3D with an array") : void();
    return hip_note(kNotSupported);
  }
  if (!copy->source.pointer || !copy->target.pointer) return hip_note(kInvalidValue);
  for (size_t z = 0; z < copy->extent.depth; z++) {
    for (size_t y = 0; y < copy->extent.height; y++) {
      const char* source = at(copy->source, copy->source_place, y, z);
      char* target = const_cast<char*>(at(copy->target, copy->target_place, y, z));
      const int status = hipMemcpy(target, source, copy->extent.width, copy->kind);
      if (status) return status;
    }
  }
  return kSuccess;
}
int hipMemcpy3DAsync(const Copy3D* copy, void* stream) {
  if (!copy) return hip_note(kInvalidValue);
  return hip_queue(stream, [kept = *copy] { return hipMemcpy3D(&kept); });
}
int hipMemset(void* target, int value, size_t size) {
  if (!size) return kSuccess;
  return hip_note(gpu().fill(address_of(target), value & 0xff, size, 1));
}
int hipMemset_spt(void* target, int value, size_t size) { return hipMemset(target, value, size); }
int hipMemsetAsync(void* target, int value, size_t size, void* stream) {
  return hip_queue(stream, [=] { return hipMemset(target, value, size); });
}
int hipMemset2D(void* target, size_t pitch, int value, size_t width, size_t height) {
  if (!target || width > pitch) return hip_note(kInvalidValue);
  for (size_t row = 0; row < height; row++) {
    const int status = hipMemset(static_cast<char*>(target) + row * pitch, value, width);
    if (status) return status;
  }
  return kSuccess;
}
int hipMemset2DAsync(void* target, size_t pitch, int value, size_t width, size_t height,
                     void* stream) {
  return hip_queue(stream, [=] { return hipMemset2D(target, pitch, value, width, height); });
}
int hipMemset3D(Pitched target, int value, Extent extent) {
  for (size_t z = 0; z < extent.depth; z++) {
    char* plane = static_cast<char*>(target.pointer) + z * target.y_size * target.pitch;
    const int status = hipMemset2D(plane, target.pitch, value, extent.width, extent.height);
    if (status) return status;
  }
  return kSuccess;
}
int hipMemset3DAsync(Pitched target, int value, Extent extent, void* stream) {
  return hip_queue(stream, [=] { return hipMemset3D(target, value, extent); });
}
int hipMemsetD8(void* target, unsigned char value, size_t count) {
  return hipMemset(target, value, count);
}
int hipMemsetD8Async(void* target, unsigned char value, size_t count, void* stream) {
  return hip_queue(stream, [=] { return hipMemset(target, value, count); });
}
int hipMemsetD16(void* target, unsigned short value, size_t count) {
  return hip_note(gpu().fill(address_of(target), value, count, 2));
}
int hipMemsetD16Async(void* target, unsigned short value, size_t count, void* stream) {
  return hip_queue(stream, [=] { return hipMemsetD16(target, value, count); });
}
int hipMemsetD32(void* target, int value, size_t count) {
  return hip_note(gpu().fill(address_of(target), value, count, 4));
}
int hipMemsetD32Async(void* target, int value, size_t count, void* stream) {
  return hip_queue(stream, [=] { return hipMemsetD32(target, value, count); });
}

// -- variables of the program ----------------------------------------------------------------------

int hipGetSymbolAddress(void** pointer, const void* symbol) {
  if (!pointer) return hip_note(kInvalidValue);
  uint64_t place = 0, size = 0;
  const int status = hip_find_variable(symbol, &place, &size);
  *pointer = reinterpret_cast<void*>(place);
  return hip_note(status);
}
int hipGetSymbolSize(size_t* bytes, const void* symbol) {
  if (!bytes) return hip_note(kInvalidValue);
  uint64_t place = 0, size = 0;
  const int status = hip_find_variable(symbol, &place, &size);
  *bytes = size;
  return hip_note(status);
}
int hipMemcpyToSymbol(const void* symbol, const void* source, size_t size, size_t offset,
                      int kind) {
  if (!symbol) return hip_note(kInvalidSymbol);
  if (kind != 1 && kind != 3 && kind != kDefaultKind) return hip_note(kInvalidDirection);
  uint64_t place = 0, room = 0;
  const int status = hip_find_variable(symbol, &place, &room);
  if (status || !is_within(offset, size, room)) return hip_note(status ? status : kInvalidValue);
  return hip_note(gpu().copy(place + offset, address_of(source), size, kind));
}
int hipMemcpyToSymbolAsync(const void* symbol, const void* source, size_t size, size_t offset,
                           int kind, void* stream) {
  return hip_queue(stream, [=] { return hipMemcpyToSymbol(symbol, source, size, offset, kind); });
}
int hipMemcpyFromSymbol(void* target, const void* symbol, size_t size, size_t offset, int kind) {
  if (!symbol) return hip_note(kInvalidSymbol);
  if (kind != 2 && kind != 3 && kind != kDefaultKind) return hip_note(kInvalidDirection);
  uint64_t place = 0, room = 0;
  const int status = hip_find_variable(symbol, &place, &room);
  if (status || !is_within(offset, size, room)) return hip_note(status ? status : kInvalidValue);
  return hip_note(gpu().copy(address_of(target), place + offset, size, kind));
}
int hipMemcpyFromSymbolAsync(void* target, const void* symbol, size_t size, size_t offset,
                             int kind, void* stream) {
  return hip_queue(stream, [=] { return hipMemcpyFromSymbol(target, symbol, size, offset, kind); });
}

}  // extern "C"

std::function<int()> hip_recorded_copy(const Copy3D* copy) {
  return [kept = *copy] { return hipMemcpy3D(&kept); };
}
