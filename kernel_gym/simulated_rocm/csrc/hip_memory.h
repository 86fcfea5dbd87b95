// Memory: the structures of copies, and what the sources that handle memory share.
#pragma once

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

inline constexpr int kDefaultKind = 4, kDirectKind = 1024;  // of hipMemcpyKind

inline bool is_within(size_t offset, size_t size, size_t room) {
  return offset <= room && size <= room - offset;
}
// Whether a range that starts in an allocation ends in it. Memory that HIP does not know fits.
bool hip_fits(const void* pointer, size_t size);
// Lets another file free what hipFree is given. It answers false for an address that it does not
// know.
void hip_watch_free(bool (*other)(uint64_t place, int* error));
