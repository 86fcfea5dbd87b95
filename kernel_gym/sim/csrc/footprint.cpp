// Which lines of the arena a launch touched.
#include <algorithm>
#include <cstdlib>

#include "dispatch.h"

Footprint::~Footprint() {
  for (u8* map : maps_) free(map);
}

bool Footprint::resize(u64 base, u64 size) {
  for (u8*& map : maps_) {
    free(map);
    map = (u8*)calloc((size >> 7) + 2, 1);  // pages come into being when touched
  }
  base_ = base;
  lines_ = maps_[0] && maps_[1] ? (size >> 7) + 2 : 0;
  epoch_ = 0;
  return lines_ != 0;
}

u8 Footprint::begin() {
  if (++epoch_ == 0) {
    resize(base_, (lines_ - 2) << 7);  // fresh pages: clearing would touch all of a sparse map
    epoch_ = 1;
  }
  return epoch_;
}

u64 Footprint::count(const Region* regions, u64 region_count, bool write, u8 epoch) const {
  const u8* map = maps_[write];
  u64 total = 0;
  u64 next = 0;  // lines shared by neighbouring regions count once
  for (u64 i = 0; i < region_count; i++) {
    // A module's variables lie outside the arena that this is an account of.
    if (regions[i].start < base_ || (regions[i].start - base_) >> 7 >= lines_) continue;
    const u64 first = std::max(next, (regions[i].start - base_) >> 7);
    const u64 last = std::min(lines_, ((regions[i].end - 1 - base_) >> 7) + 1);
    for (u64 line = first; line < last; line++) total += map[line] == epoch;
    next = std::max(next, last);
  }
  return total;
}
