// The shape of an access: the addresses of its lanes relative to each other. Loops and waves repeat
// shapes, so the last results of each instruction are kept.
#pragma once

#include <memory>
#include <vector>

#include "lanes.h"

struct Shape {
  alignas(64) u32 relative[kLanes];  // bytes from the start; 0 for inactive lanes
  u64 lanes;
  u32 phase;  // of the start: in its cache line, or in its word of LDS
  u32 size;  // bytes of a lane
  u32 segments;  // distinct 64-byte pieces
  u32 line_count;
  u32 lines[2 * kLanes];  // distinct 128-byte lines, ascending, counted from the start's
  u32 lds_cycles;
};

// The last shapes of each instruction.
class Shapes {
 public:
  explicit Shapes(u32 instructions) : kept_(instructions) {}
  // Of global memory: lanes in [low, high), of which `low` is `phase` bytes into a line.
  const Shape& global(u32 instruction, const u64* addresses, u64 lanes, u64 low, u64 high,
                      u32 phase, u32 size);
  // Of LDS with 32 or 64 banks. Lanes of an atomic operation on one word follow each other.
  const Shape& local(u32 instruction, const u32* places, u64 lanes, u32 size, bool write,
                     bool atomic, u32 banks);

 private:
  static constexpr u32 kKept = 16;
  struct Kept {
    u32 hashes[kKept];
    std::unique_ptr<Shape> shapes[kKept];
    u32 count = 0, next = 0;
  };
  // The shape with these values, and whether it is new.
  std::pair<Shape&, bool> find(u32 instruction, const u32* relative, u64 lanes, u32 phase,
                               u32 size);
  std::vector<std::unique_ptr<Kept>> kept_;  // by instruction
};
