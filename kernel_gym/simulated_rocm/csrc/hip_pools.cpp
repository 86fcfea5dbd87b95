// HIP host runtime: pools, and allocations of a stream. These happen at once, or in a capture.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

#include "hip_graphs.h"
#include "hip_memory.h"

extern "C" {
int hipMalloc(void**, size_t);
int hipFree(void*);
}

namespace {

enum : int { kPinned = 1, kOnDevice = 1, kNoHandle = 0, kFileHandle = 1, kMostAccess = 3 };

struct Properties {  // the head of hipMemPoolProps
  int type, handles, location_type, location;
};
struct Access {
  int location_type, location, flags;
};
// What a program has set for a pool. It changes nothing, and is there when it is read.
struct Pool {
  int handles = kNoHandle;  // the kind that it can be exported as
  int reuse[3] = {1, 1, 1};
  uint64_t threshold = 0;
};
Pool pool_of_its_own;  // that of the device
bool is_pool(const void* pool) {
  return pool == &pool_of_its_own || handles<Pool>().has(pool);
}
Pool& pool_of(void* pool) { return *static_cast<Pool*>(pool); }

// The pools of this process by their files: a program may import what it has exported itself.
std::map<ino_t, Pool>& exported() {
  static auto* table = new std::map<ino_t, Pool>;
  return *table;
}
std::mutex& export_lock() {
  static auto* lock = new std::mutex;
  return *lock;
}
// An allocation that was exported: hipMemPoolPtrExportData.
struct ExportedPointer {
  uint64_t process, pointer;
};

int check_stream(const void* stream) {  // these calls have a code of their own
  return hip_check_stream(stream) ? hip_note(kInvalidHandle) : int{kSuccess};
}
int of_other_process(const char* api) {
  if (gpu().missing) gpu().missing(api);
  return hip_note(kNotSupported);
}

}  // namespace

extern "C" {

int hipMallocAsync(void** pointer, size_t size, void* stream) {
  if (!pointer) return hip_note(kInvalidValue);
  if (const int wrong = check_stream(stream)) return wrong;
  return hip_is_captured(stream) ? hip_queue_allocation(pointer, size, stream)
                                 : hipMalloc(pointer, size);
}
int hipFreeAsync(void* pointer, void* stream) {
  if (!pointer) return hip_note(kInvalidValue);
  if (const int wrong = check_stream(stream)) return wrong;
  return hip_is_captured(stream) ? hip_queue_free(pointer, stream) : hipFree(pointer);
}
int hipMallocFromPoolAsync(void** pointer, size_t size, void* pool, void* stream) {
  return is_pool(pool) ? hipMallocAsync(pointer, size, stream) : hip_note(kInvalidValue);
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
int hipMemPoolCreate(void** pool, const Properties* properties) {
  if (!pool || !properties || properties->type != kPinned) return hip_note(kInvalidValue);
  const bool is_here = properties->location_type == kOnDevice && !properties->location;
  if (!is_here) return hip_note(kInvalidValue);
  Pool made;
  made.handles = properties->handles;
  *pool = handles<Pool>().add(made);
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
int hipMemPoolSetAccess(void* pool, const Access* list, size_t count) {
  if (!is_pool(pool) || !list || !count) return hip_note(kInvalidValue);
  if (count > 1) return hip_note(kInvalidDevice);  // there is one
  if (list->location_type != kOnDevice || list->flags > kMostAccess) return hip_note(kInvalidValue);
  return hip_note(list->location || list->flags <= 0 ? kInvalidDevice : kSuccess);
}
int hipMemPoolGetAccess(int* flags, void* pool, const Access* location) {  // it has no flags
  if (!is_pool(pool) || !location || location->location_type != kOnDevice || location->location) {
    return hip_note(kInvalidValue);
  }
  return hip_store<int>(flags, kMostAccess);
}

// -- handles for other processes, which only this one can import -----------------------------------

int hipMemPoolExportToShareableHandle(int* handle, void* pool, int kind, unsigned flags) {
  if (!handle || !is_pool(pool) || flags) return hip_note(kInvalidValue);
  if (kind != kFileHandle || kind != pool_of(pool).handles) return hip_note(kInvalidValue);
  struct stat facts = {};
  const int file = memfd_create("kernel-gym-pool", MFD_CLOEXEC);
  if (file < 0 || fstat(file, &facts)) return hip_note(kOutOfMemory);
  std::lock_guard<std::mutex> hold(export_lock());
  exported()[facts.st_ino] = pool_of(pool);
  *handle = file;
  return hip_note(kSuccess);
}
int hipMemPoolImportFromShareableHandle(void** pool, void* handle, int kind, unsigned flags) {
  if (!pool || !handle || kind != kFileHandle || flags) return hip_note(kInvalidValue);
  struct stat facts = {};
  if (fstat(static_cast<int>(address_of(handle)), &facts)) return hip_note(kInvalidValue);
  std::lock_guard<std::mutex> hold(export_lock());
  const auto entry = exported().find(facts.st_ino);
  if (entry == exported().end()) {
    return of_other_process("hipMemPoolImportFromShareableHandle of another process");
  }
  *pool = handles<Pool>().add(entry->second);
  return hip_note(kSuccess);
}
int hipMemPoolExportPointer(ExportedPointer* data, void* pointer) {
  uint64_t start = 0, bytes = 0;
  int visible = 0;
  if (!data || !pointer) return hip_note(kInvalidValue);
  if (!gpu().range || gpu().range(address_of(pointer), &start, &bytes, &visible)) {
    return hip_note(kOutOfMemory);
  }
  *data = {static_cast<uint64_t>(getpid()), address_of(pointer)};
  return hip_note(kSuccess);
}
int hipMemPoolImportPointer(void** pointer, void* pool, const ExportedPointer* data) {
  if (!pointer || !is_pool(pool) || !data) return hip_note(kInvalidValue);
  if (data->process != static_cast<uint64_t>(getpid())) {
    return of_other_process("hipMemPoolImportPointer of another process");
  }
  *pointer = reinterpret_cast<void*>(data->pointer);
  return hip_note(kSuccess);
}

}  // extern "C"
