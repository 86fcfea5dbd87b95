// How the lanes of an access lie to each other. Loops repeat that, so what follows from it is kept
// for each instruction and worked out again only when it changes.
#pragma once

#include <memory>
#include <vector>

#include "lanes.h"

struct Shape {
  alignas(64) u32 relative[kLanes];  // bytes from the start; 0 of lanes that take no part
  u64 lanes = 0;   // 0: nothing is kept
  u32 phase = 0;   // of the start: in its cache line, or in its word of LDS
  u32 size = 0;    // bytes of a lane
  u32 segments = 0;           // distinct 64-byte pieces
  u32 line_count = 0;
  u32 lines[2 * kLanes];      // distinct 128-byte lines, ascending, counted from the start's
  u32 lds_cycles = 0;
};

// The shapes of the last accesses, by instruction.
class Shapes {
 public:
  explicit Shapes(u32 instructions) : shapes_(instructions) {}
  // Of global memory: lanes in [low, high), of which `low` is `phase` bytes into a line.
  const Shape& global(u32 instruction, const u64* addresses, u64 lanes, u64 low, u64 high,
                      u32 phase, u32 size);
  // Of LDS.
  const Shape& local(u32 instruction, const u32* addresses, u64 lanes, u32 offset, u32 size);

 private:
  Shape& of(u32 instruction) {
    if (UNLIKELY(!shapes_[instruction])) shapes_[instruction].reset(new Shape);
    return *shapes_[instruction];
  }
  std::vector<std::unique_ptr<Shape>> shapes_;
};
