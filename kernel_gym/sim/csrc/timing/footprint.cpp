#include "timing/footprint.h"

#include <algorithm>
#include <cstdlib>

Footprint::~Footprint() {
  for (u8* map : maps_) free(map);
}

bool Footprint::resize(u64 base, u64 size) {
  for (u8*& map : maps_) {
    free(map);
    map = (u8*)calloc((size >> 7) + 2, 1);  // pages are allocated when touched
  }
  base_ = base;
  lines_ = maps_[0] && maps_[1] ? (size >> 7) + 2 : 0;
  epoch_ = 0;
  outside_.clear();
  return lines_ != 0;
}

void Footprint::watch(const std::vector<Region>& allocations) {
  std::vector<Outside> all;
  for (const Region& region : allocations) {
    const u64 first = (region.start - base_) >> 7, end = ((region.end - 1 - base_) >> 7) + 1;
    if (end <= lines_) continue;
    const auto known = std::find_if(outside_.begin(), outside_.end(), [&](const Outside& o) {
      return o.first == first && o.end == end && !o.maps[0].empty();
    });
    if (known != outside_.end()) {
      all.push_back(std::move(*known));
    } else {
      const std::vector<u8> nobodys(end - first, 0);
      all.push_back({first, end, {nobodys, nobodys}});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Outside& a, const Outside& b) { return a.first < b.first; });
  outside_ = std::move(all);
}

void Footprint::mark_outside(u64 line, bool write, u8 epoch) {
  auto next = std::upper_bound(outside_.begin(), outside_.end(), line,
                               [](u64 x, const Outside& o) { return x < o.first; });
  if (next == outside_.begin()) return;
  Outside& found = next[-1];
  if (line < found.end) found.maps[write][line - found.first] = epoch;
}

u8 Footprint::begin() {
  if (++epoch_ == 0) {
    clear();
    epoch_ = 1;
  }
  return epoch_;
}

void Footprint::clear() {
  std::vector<Outside> outside = std::move(outside_);
  resize(base_, (lines_ - 2) << 7);  // fresh pages: clearing would touch all of a sparse map
  outside_ = std::move(outside);
  for (Outside& each : outside_) {
    for (std::vector<u8>& map : each.maps) std::fill(map.begin(), map.end(), 0);
  }
}

u64 Footprint::count(const Region* regions, u64 region_count, bool write, u8 epoch) const {
  const u8* map = maps_[write];
  u64 total = 0;
  u64 next = 0;  // lines shared by neighbouring regions count once
  for (u64 i = 0; i < region_count; i++) {
    if (regions[i].start < base_ || (regions[i].start - base_) >> 7 >= lines_) continue;
    const u64 first = std::max(next, (regions[i].start - base_) >> 7);
    const u64 last = std::min(lines_, ((regions[i].end - 1 - base_) >> 7) + 1);
    for (u64 line = first; line < last; line++) total += map[line] == epoch;
    next = std::max(next, last);
  }
  for (const Outside& each : outside_) {
    total += (u64)std::count(each.maps[write].begin(), each.maps[write].end(), epoch);
  }
  return total;
}
