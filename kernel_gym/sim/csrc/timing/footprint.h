// The lines of memory that a launch touched, and by how many workgroups.
#pragma once

#include <vector>

#include "timing/read_lines.h"
#include "timing/shapes.h"
#include "wave.h"

// The lines of memory that a launch touched: one word for each line and direction. A word has the
// number of the last launch that touched the line (8 bits), whether several workgroups did (1 bit),
// and the workgroup, or a set of workgroups (23 bits). Threads may write at the same time: the
// words at the end do not depend on their order. The lines of the arena come first, then those of
// allocations outside of it (variables of modules).
class Footprint {
 public:
  ~Footprint();
  bool resize(u64 base, u64 size);  // false if there is no memory for it
  void watch(const std::vector<Region>& allocations);  // also those outside of the arena
  bool ready() const { return lines_ != 0; }
  u64 base() const { return base_; }
  Region arena() const { return {base_, base_ + (lines_ ? (lines_ - 2) << 7 : 0)}; }
  u8 begin();  // a new launch; returns its number
  // The lines of [low, high).
  void mark(const Wave& wave, u64 low, u64 high, bool write) {
    for (u64 line = (low - base_) >> 7; line <= (high - 1 - base_) >> 7; line++) {
      mark_line(line, write, wave.epoch, wave.workgroup);
      if (!write) wave.read_lines->add(line);
    }
  }
  // The lines of an access that starts in line `first`.
  void mark(const Wave& wave, u64 first, const Shape& shape, bool write) {
    for (u32 i = 0, count = shape.line_count; i < count; i++) {
      mark_line(first + shape.lines[i], write, wave.epoch, wave.workgroup);
      if (!write) wave.read_lines->add(first + shape.lines[i]);
    }
  }
  u64 count(const Region* regions, u64 region_count, bool write) const;
  // How many workgroups of the last launch touched a line, at least; 0 if the host keeps it.
  double workgroups(u64 line, bool write) const;
  // Adds to each workgroup, by number modulo the size, the lines that no other workgroup read.
  void count_own(const Region* regions, u64 region_count, std::vector<u32>& own) const;

 private:
  static constexpr u32 kShared = 1u << 23, kSet = 23, kOwner = kShared - 1;
  static constexpr u64 kPageLines = 1 << 14;
  struct Outside {
    u64 first, end;             // lines
    std::vector<u32> maps[2];
  };
  // Words of the lines of the arena, in pages that are allocated when they are touched.
  using Map = std::vector<u32*>;
  static u32 bit_of(u32 workgroup) { return 1u << workgroup % kSet; }  // 23 is a prime
  static bool known(u32 word, u32 owner) {
    return word & kShared ? word & bit_of(owner) : (word & kOwner) == owner;
  }
  void mark_line(u64 line, bool write, u8 epoch, u32 workgroup) {
    if (UNLIKELY(line >= lines_)) return mark_outside(line, write, epoch, workgroup);
    u32*& page = maps_[write][line / kPageLines];
    u32* words = __atomic_load_n(&page, __ATOMIC_ACQUIRE);
    if (UNLIKELY(!words)) words = allocate(page);
    touch(words[line % kPageLines], epoch, workgroup & kOwner);
  }
  SIM_INLINE void touch(u32& word, u8 epoch, u32 owner) {
    const u32 fresh = (u32)epoch << 24 | owner;
    const u32 old = __atomic_load_n(&word, __ATOMIC_RELAXED);
    if (UNLIKELY(old != fresh)) share(word, old, fresh);
  }
  static u32* allocate(u32*& page);
  static void share(u32& word, u32 old, u32 fresh);
  void mark_outside(u64 line, bool write, u8 epoch, u32 workgroup);
  const u32* word_of(u64 line, bool write) const;
  template <class Visit>
  void each_word(const Region* regions, u64 region_count, bool write, const Visit& visit) const;
  void clear();

  u64 base_ = 0, lines_ = 0;
  Map maps_[2];                   // reads, writes
  std::vector<Outside> outside_;  // by first line
  u8 epoch_ = 0;
};
