// HIP host runtime: pools, and allocations of a stream. These happen at once, or in a capture.
#include <cstring>

#include "hip_graphs.h"
#include "hip_memory.h"

extern "C" {
int hipMalloc(void**, size_t);
int hipFree(void*);
}

namespace {

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

}  // namespace

extern "C" {

int hipMallocAsync(void** pointer, size_t size, void* stream) {
  if (const int wrong = hip_check_stream(stream)) return wrong;
  return hip_is_captured(stream) ? hip_queue_allocation(pointer, size, stream)
                                 : hipMalloc(pointer, size);
}
int hipFreeAsync(void* pointer, void* stream) {
  if (!pointer) return hip_note(kInvalidValue);
  if (const int wrong = hip_check_stream(stream)) return wrong;
  return hip_is_captured(stream) ? hip_queue_free(pointer, stream) : hipFree(pointer);
}
int hipMallocFromPoolAsync(void** pointer, size_t size, void*, void* stream) {
  return hipMallocAsync(pointer, size, stream);
}

int hipDeviceGetDefaultMemPool(void** pool, int ordinal) {
  if (!pool) return hip_note(kInvalidValue);
  if (ordinal) return hip_note(kInvalidDevice);
  *pool = &pool_of_its_own;
  return hip_note(kSuccess);
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
  return hip_note(kSuccess);
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
  return hip_note(kSuccess);
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
  return hip_note(kSuccess);
}
int hipMemPoolSetAccess(void* pool, const void* list, size_t count) {
  return hip_note(is_pool(pool) && list && count ? kSuccess : kInvalidValue);
}

}  // extern "C"
