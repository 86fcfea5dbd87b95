#include "timing/footprint.h"

#include <algorithm>
#include <cstdlib>
#include <new>

Footprint::~Footprint() { resize(0, 0); }

bool Footprint::resize(u64 base, u64 size) {
  base_ = base;
  lines_ = size ? (size >> 7) + 2 : 0;
  for (Map& map : maps_) {
    for (u32* page : map) free(page);
    map.assign((lines_ + kPageLines - 1) / kPageLines, nullptr);
  }
  epoch_ = 0;
  outside_.clear();
  return lines_ != 0;
}

// Several threads may need a page at the same time. One of them wins.
u32* Footprint::allocate(u32*& page) {
  u32* fresh = (u32*)calloc(kPageLines, sizeof(u32));
  if (!fresh) throw std::bad_alloc();
  u32* old = nullptr;
  if (__atomic_compare_exchange_n(&page, &old, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    return fresh;
  }
  free(fresh);
  return old;
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
      const std::vector<u32> nobodys(end - first, 0);
      all.push_back({first, end, {nobodys, nobodys}});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Outside& a, const Outside& b) { return a.first < b.first; });
  outside_ = std::move(all);
}

// Adds a workgroup to a line. A set of workgroups only grows.
void Footprint::share(u32& word, u32 old, u32 fresh) {
  const u32 owner = fresh & kOwner;
  for (;;) {
    u32 next = fresh;
    if (old >> 24 == fresh >> 24) {
      if (known(old, owner)) return;
      const u32 others = old & kShared ? old : (old & ~kOwner) | kShared | bit_of(old & kOwner);
      next = others | bit_of(owner);
    }
    if (__atomic_compare_exchange_n(&word, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      return;
    }
  }
}

const u32* Footprint::word_of(u64 line, bool write) const {
  if (line < lines_) {
    const u32* words = maps_[write][line / kPageLines];
    return words ? words + line % kPageLines : nullptr;
  }
  auto next = std::upper_bound(outside_.begin(), outside_.end(), line,
                               [](u64 x, const Outside& o) { return x < o.first; });
  if (next == outside_.begin()) return nullptr;
  const Outside& outside = next[-1];
  return line < outside.end ? &outside.maps[write][line - outside.first] : nullptr;
}

void Footprint::mark_outside(u64 line, bool write, u8 epoch, u32 workgroup) {
  const u32* word = word_of(line, write);
  if (word) touch(const_cast<u32&>(*word), epoch, workgroup & kOwner);
}

// Workgroups that share a line are neighbours or have a stride between them, which fills the bits
// of a set one after another. If all are in use there are many: about as many as it takes on
// average until so many random ones have filled the set.
double Footprint::workgroups(u64 line, bool write) const {
  constexpr double kMany = 86;
  const u32* word = word_of(line, write);
  if (!word) return 0;
  if (*word >> 24 != epoch_ || !(*word & kShared)) return 1;
  const u32 bits = (u32)__builtin_popcount(*word & kOwner);
  return bits == kSet ? kMany : std::max(2.0, (double)bits);
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
    for (std::vector<u32>& map : each.maps) std::fill(map.begin(), map.end(), 0);
  }
}

template <class Visit>
void Footprint::each_word(const Region* regions, u64 region_count, bool write,
                          const Visit& visit) const {
  const Map& map = maps_[write];
  u64 next = 0;  // lines shared by neighbouring regions count once
  for (u64 i = 0; i < region_count; i++) {
    if (regions[i].start < base_ || (regions[i].start - base_) >> 7 >= lines_) continue;
    const u64 first = std::max(next, (regions[i].start - base_) >> 7);
    const u64 last = std::min(lines_, ((regions[i].end - 1 - base_) >> 7) + 1);
    for (u64 line = first; line < last;) {
      const u64 end = std::min(last, (line / kPageLines + 1) * kPageLines);
      const u32* words = map[line / kPageLines];
      for (; words && line < end; line++) visit(words[line % kPageLines]);
      line = end;
    }
    next = std::max(next, last);
  }
  for (const Outside& each : outside_) {
    for (u32 word : each.maps[write]) visit(word);
  }
}

u64 Footprint::count(const Region* regions, u64 region_count, bool write) const {
  u64 total = 0;
  each_word(regions, region_count, write, [&](u32 word) { total += word >> 24 == epoch_; });
  return total;
}

void Footprint::count_own(const Region* regions, u64 region_count, std::vector<u32>& own) const {
  if (own.empty()) return;
  each_word(regions, region_count, false, [&](u32 word) {
    if (word >> 24 == epoch_ && !(word & kShared)) own[(word & kOwner) % own.size()]++;
  });
}
