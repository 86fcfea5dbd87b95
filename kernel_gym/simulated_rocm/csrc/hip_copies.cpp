// HIP host runtime: copies and fills, also of the variables of a program.
#include "hip_memory.h"

namespace {

const char* at(const Pitched& plane, const Position& place, size_t y, size_t z) {
  return static_cast<const char*>(plane.pointer) +
         ((place.z + z) * plane.y_size + place.y + y) * plane.pitch + place.x;
}

}  // namespace

extern "C" {

int hipMemcpy(void* target, const void* source, size_t size, int kind) {
  if ((kind < 0 || kind > kDefaultKind) && kind != kDirectKind) return hip_note(kInvalidDirection);
  if (!size) return hip_note(kSuccess);
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
  return hip_note(kSuccess);
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
  return hip_note(kSuccess);
}
int hipMemcpy3DAsync(const Copy3D* copy, void* stream) {
  if (!copy) return hip_note(kInvalidValue);
  return hip_queue(stream, [kept = *copy] { return hipMemcpy3D(&kept); });
}
int hipMemset(void* target, int value, size_t size) {
  if (!size) return hip_note(kSuccess);
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
  return hip_note(kSuccess);
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
  return hip_note(kSuccess);
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
