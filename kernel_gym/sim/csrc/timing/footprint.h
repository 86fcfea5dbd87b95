// The lines of memory that a launch touched.
#pragma once

#include <vector>

#include "timing/shapes.h"
#include "wave.h"

// The lines of memory that a launch touched: one byte for each line and direction, so that threads
// may write at the same time. A byte is the number of the last launch that touched the line. The
// lines of the arena come first, then those of allocations outside of it (variables of modules).
class Footprint {
 public:
  ~Footprint();
  bool resize(u64 base, u64 size);  // false if there is no memory for it
  void watch(const std::vector<Region>& allocations);  // also those outside of the arena
  bool ready() const { return lines_ != 0; }
  u64 base() const { return base_; }
  Region arena() const { return {base_, base_ + (lines_ ? (lines_ - 2) << 7 : 0)}; }
  u8 begin();  // a new launch; returns its number
  void mark(u64 low, u64 high, bool write, u8 epoch) {
    for (u64 line = (low - base_) >> 7; line <= (high - 1 - base_) >> 7; line++) {
      mark_line(line, write, epoch);
    }
  }
  // The lines of an access that starts in line `first`.
  void mark(u64 first, const Shape& shape, bool write, u8 epoch) {
    for (u32 i = 0, count = shape.line_count; i < count; i++) {
      mark_line(first + shape.lines[i], write, epoch);
    }
  }
  u64 count(const Region* regions, u64 region_count, bool write, u8 epoch) const;

 private:
  struct Outside {
    u64 first, end;             // lines
    std::vector<u8> maps[2];
  };
  void mark_line(u64 line, bool write, u8 epoch) {
    if (LIKELY(line < lines_)) {
      maps_[write][line] = epoch;
    } else {
      mark_outside(line, write, epoch);
    }
  }
  void mark_outside(u64 line, bool write, u8 epoch);
  void clear();

  u64 base_ = 0, lines_ = 0;
  u8* maps_[2] = {nullptr, nullptr};  // reads, writes
  std::vector<Outside> outside_;      // by first line
  u8 epoch_ = 0;
};
