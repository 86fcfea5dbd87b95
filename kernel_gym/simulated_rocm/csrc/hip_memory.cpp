// HIP host runtime: memory, and the variables of a program.
#include <cstdlib>
#include <cstring>

#include "hip_runtime.h"

namespace {

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
struct PointerAttributes {
  int memory_type, device;
  void *device_pointer, *host_pointer;
  int is_managed;
  unsigned flags;
};
enum : int { kHostMemory = 0, kDeviceMemory = 1 };
enum : int { kAlignment = 256, kDefaultKind = 4, kDirectKind = 1024 };

char pool_of_its_own;  // its address stands for every memory pool

size_t aligned(size_t width) { return (width + kAlignment - 1) / kAlignment * kAlignment; }

// The product of sizes; the largest number, which no memory has, if it has more than 64 bits.
size_t product(size_t a, size_t b) {
  size_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? SIZE_MAX : result;
}
bool is_within(size_t offset, size_t size, size_t room) {
  return offset <= room && size <= room - offset;
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
int hipExtMallocWithFlags(void** pointer, size_t size, unsigned) {
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
  return hip_check_stream(stream) ?: hipFree(pointer);
}
// Pinned memory. For candidates it is ordinary memory of the host, which kernels cannot reach.
int hipHostMalloc(void** pointer, size_t size, unsigned) {
  if (!pointer) return hip_note(kInvalidValue);
  if (gpu().allocate_visible) {
    *pointer = reinterpret_cast<void*>(gpu().allocate_visible(size ? size : 1));
  } else {
    *pointer = std::malloc(size ? size : 1);
  }
  return hip_note(*pointer ? kSuccess : kOutOfMemory);
}
int hipHostAlloc(void** pointer, size_t size, unsigned flags) {
  return hipHostMalloc(pointer, size, flags);
}
int hipMemAllocHost(void** pointer, size_t size) { return hipHostMalloc(pointer, size, 0); }
int hipMallocHost(void** pointer, size_t size) { return hipHostMalloc(pointer, size, 0); }
int hipHostFree(void* pointer) {
  if (!pointer) return kSuccess;
  if (gpu().allocate_visible) return hip_note(gpu().release(address_of(pointer)));
  std::free(pointer);
  return kSuccess;
}
int hipFreeHost(void* pointer) { return hipHostFree(pointer); }
int hipMallocManaged(void** pointer, size_t size, unsigned) {
  if (!pointer) return hip_note(kInvalidValue);
  if (!gpu().allocate_visible) return hip_note(kNotSupported);
  return hipHostMalloc(pointer, size, 0);
}
int hipHostRegister(void* pointer, size_t size, unsigned) {
  if (!pointer || !size) return hip_note(kInvalidValue);
  if (!gpu().share) return kSuccess;
  uint64_t place = 0;
  return hip_note(gpu().share(address_of(pointer), size, &place));
}
int hipHostUnregister(void* pointer) {
  return gpu().unshare ? hip_note(gpu().unshare(address_of(pointer))) : kSuccess;
}
int hipHostGetDevicePointer(void** device_pointer, void* pointer, unsigned) {
  if (!device_pointer || !pointer) return hip_note(kInvalidValue);
  if (!gpu().share) return hip_note(kNotSupported);
  uint64_t place = 0;
  const int status = gpu().share(address_of(pointer), 0, &place);
  *device_pointer = reinterpret_cast<void*>(place);
  return hip_note(status);
}
int hipHostGetFlags(unsigned* flags, void*) { return hip_store(flags, 0u); }
int hipMemGetInfo(size_t* available, size_t* total) {
  const size_t found = gpu().available ? gpu().available() : device().memory;
  if (available) *available = found;
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
  if (!attributes) return hip_note(kInvalidValue);
  uint64_t start = 0, bytes = 0;
  int visible = 0;
  *attributes = {};
  if (!gpu().range || gpu().range(address_of(pointer), &start, &bytes, &visible)) {
    return hip_note(kInvalidValue);
  }
  attributes->memory_type = visible ? kHostMemory : kDeviceMemory;
  attributes->device_pointer = const_cast<void*>(pointer);
  if (visible) attributes->host_pointer = const_cast<void*>(pointer);
  return kSuccess;
}
int hipMemAdvise(const void*, size_t, int, int) { return kSuccess; }
int hipMemPrefetchAsync(const void*, size_t, int, void* stream) { return hip_check_stream(stream); }
int hipStreamAttachMemAsync(void* stream, void*, size_t, unsigned) {
  return hip_check_stream(stream);
}

// -- pools: allocations of a stream happen at once -------------------------------------------------

int hipDeviceGetDefaultMemPool(void** pool, int) {
  return hip_store<void*>(pool, &pool_of_its_own);
}
int hipDeviceGetMemPool(void** pool, int device) { return hipDeviceGetDefaultMemPool(pool, device); }
int hipDeviceSetMemPool(int, void*) { return kSuccess; }
int hipMemPoolCreate(void** pool, const void*) { return hipDeviceGetDefaultMemPool(pool, 0); }
int hipMemPoolDestroy(void*) { return kSuccess; }
int hipMemPoolTrimTo(void*, size_t) { return kSuccess; }
int hipMemPoolSetAttribute(void*, int, void*) { return kSuccess; }
int hipMemPoolGetAttribute(void*, int, void* value) {
  return hip_store<uint64_t>(static_cast<uint64_t*>(value), 0);
}
int hipMemPoolSetAccess(void*, const void*, size_t) { return kSuccess; }

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
  if (width > target_pitch || width > source_pitch) return hip_note(kInvalidValue);
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
