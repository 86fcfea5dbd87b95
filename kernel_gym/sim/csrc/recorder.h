// What the timing model learns from a sampled workgroup: the blocks each wave ran and, for every
// memory instruction, how its accesses look to the caches and to LDS.
#pragma once

#include <vector>

#include "lanes.h"

// Sums over the executions of one instruction.
struct AccessCounts {
  u64 executions = 0;
  u64 lanes = 0;
  u64 bytes = 0;
  u64 segments = 0;    // 64-byte pieces touched
  u64 lines = 0;       // 128-byte lines touched
  u64 l1_misses = 0;   // lines that left the compute unit (all lines of a store)
  u64 lds_cycles = 0;
  u64 writes = 0;

  void add(const AccessCounts& other) {
    executions += other.executions;
    lanes += other.lanes;
    bytes += other.bytes;
    segments += other.segments;
    lines += other.lines;
    l1_misses += other.l1_misses;
    lds_cycles += other.lds_cycles;
    writes += other.writes;
  }
};
static_assert(sizeof(AccessCounts) == 64, "shared with Python");

// Counts an access of any workgroup: lanes, bytes, segments and lines; [low, high) holds all.
void count_access(AccessCounts& counts, const u64* addresses, u64 lanes, u64 low, u64 high,
                  u32 size, bool write);

// The same of lanes that lie close together in [low, high).
SIM_INLINE void count_dense(AccessCounts& counts, u64 lanes, u64 bytes, u64 low, u64 high,
                            bool write) {
  counts.executions++;
  counts.lanes += lanes;
  counts.bytes += bytes;
  counts.writes += write;
  counts.segments += ((high - 1) >> 6) - (low >> 6) + 1;
  counts.lines += ((high - 1) >> 7) - (low >> 7) + 1;
}

// Counts an access to scratch, which is interleaved so that one variable of a wave is contiguous.
void count_scratch(AccessCounts& counts, u64 lanes, u32 size, bool write);

// What all workgroups executed, exactly: how often each block ran, by bin of neighbouring
// workgroups. Sums, so that the order in which threads finish workgroups does not matter.
class Bins {
 public:
  void begin(u64 workgroups, u32 blocks);
  void add(u64 workgroup, const std::vector<u64>& counts);
  u64 size() const { return bins_; }
  u64 first(u64 bin) const { return (bin * workgroups_ + bins_ - 1) / bins_; }
  const u64* counts(u64 bin) const { return counts_.data() + bin * blocks_; }

 private:
  static constexpr u64 kMaxBins = 2048, kMaxCounts = 1 << 22;
  u64 workgroups_ = 0, bins_ = 0;
  u32 blocks_ = 0;
  std::vector<u64> counts_;
};

// A set-associative cache with least-recently-used replacement, tags only.
class TagCache {
 public:
  TagCache(u32 sets, u32 ways);
  bool touch(u64 line);  // true if it was there

 private:
  u32 sets_, ways_, clock_ = 0;
  std::vector<u64> tags_;
  std::vector<u32> used_;
};

class Recorder {
 public:
  // Addresses count from `base`, so that the host's layout does not matter.
  Recorder(u32 instructions, u32 waves, u64 base);
  void block(u32 wave, u32 block) {
    if (traces[wave].size() < kMaxTrace) traces[wave].push_back(block);
  }
  void global(u32 instruction, const u64* addresses, u64 lanes, u32 size, bool write);
  void scratch(u32 instruction, u64 lanes, u32 size, bool write);
  void scalar(u32 instruction, u64 address, u32 size);
  void lds(u32 instruction, const u32* addresses, u64 lanes, u32 offset, u32 size);

  std::vector<AccessCounts> counts;         // by instruction
  std::vector<std::vector<u32>> traces;     // by wave: block numbers in order

 private:
  static constexpr size_t kMaxTrace = 1 << 16;
  u64 base_;
  TagCache l1_;
};
