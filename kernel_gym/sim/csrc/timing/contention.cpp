#include "timing/contention.h"

#include <algorithm>

void LineCounts::add(const u64* addresses, u64 lanes, u64 base) {
  u64 places[kLanes];
  u32 size = 0;
  for (; lanes; lanes &= lanes - 1) places[size++] = addresses[__builtin_ctzll(lanes)] - base;
  if (!std::is_sorted(places, places + size)) std::sort(places, places + size);
  for (u32 i = 0; i < size; i++) {
    const bool new_piece = !i || places[i] >> 6 != places[i - 1] >> 6;
    if (new_piece || places[i] == places[i - 1]) count(places[i] >> 7, 1);
  }
}

void LineCounts::add(const LineCounts& other) {
  for (const Line& line : other.table_) {
    if (line.count) count(line.number, line.count);
  }
}

u64 LineCounts::hottest() const {
  u64 most = 0;
  for (const Line& line : table_) most = std::max(most, line.count);
  return most;
}

void LineCounts::count(u64 line, u64 times) {
  if (2 * (used_ + 1) > table_.size()) grow();
  const u64 mask = table_.size() - 1;
  u64 place = line * 0x9e3779b97f4a7c15ull >> 20 & mask;
  while (table_[place].count && table_[place].number != line) place = (place + 1) & mask;
  used_ += !table_[place].count;
  table_[place].number = line;
  table_[place].count += times;
  requests_ += times;
}

void LineCounts::grow() {
  std::vector<Line> old(std::max<size_t>(64, 2 * table_.size()), Line{0, 0});
  old.swap(table_);
  used_ = requests_ = 0;
  for (const Line& line : old) {
    if (line.count) count(line.number, line.count);
  }
}
