// Records a sampled workgroup for the timing model: the blocks of each wave and, for every memory
// instruction, cache lines and LDS bank conflicts.
#pragma once

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "timing/contention.h"
#include "timing/shapes.h"

struct TimedInst;

// Sums over the executions of one instruction.
struct AccessCounts {
  u64 executions = 0;
  u64 lanes = 0;
  u64 bytes = 0;
  u64 segments = 0;    // 64-byte pieces touched
  u64 lines = 0;       // 128-byte lines touched
  u64 l1_misses = 0;   // lines that left the compute unit (all lines of a store)
  u64 late = 0;        // executions that waited for a line from beyond the L1
  u64 fetched = 0;     // lines of loads that the workgroup had not fetched before
  u64 lds_cycles = 0;
  u64 writes = 0;

  void add(const AccessCounts& other) {
    executions += other.executions;
    lanes += other.lanes;
    bytes += other.bytes;
    segments += other.segments;
    lines += other.lines;
    l1_misses += other.l1_misses;
    late += other.late;
    fetched += other.fetched;
    lds_cycles += other.lds_cycles;
    writes += other.writes;
  }
};
static_assert(sizeof(AccessCounts) == 80, "shared with Python");

// Counts an access of lanes that fill [low, high).
SIM_INLINE void count_dense(AccessCounts& counts, u64 lanes, u64 bytes, u64 low, u64 high,
                            bool write) {
  counts.executions++;
  counts.lanes += lanes;
  counts.bytes += bytes;
  counts.writes += write;
  counts.segments += ((high - 1) >> 6) - (low >> 6) + 1;
  counts.lines += ((high - 1) >> 7) - (low >> 7) + 1;
}

// Counts an access of scattered lanes.
SIM_INLINE void count_lanes(AccessCounts& counts, const Shape& shape, bool write) {
  const u64 lanes = __builtin_popcountll(shape.lanes);
  counts.executions++;
  counts.lanes += lanes;
  counts.bytes += lanes * shape.size;
  counts.writes += write;
  counts.segments += shape.segments;
  counts.lines += shape.line_count;
}

// Counts an access to scratch, which is interleaved so that one variable of a wave is contiguous.
void count_scratch(AccessCounts& counts, u64 lanes, u32 size, bool write);

// Exact counts of the blocks that all workgroups ran, summed in bins of neighbouring workgroups.
// Sums do not depend on the order in which threads finish workgroups.
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

// The accesses of the workgroups of one worker, summed by instruction.
struct Accounts {
  Accounts(u32 instructions, u64 base)
      : all(instructions), sampled(instructions), shapes(instructions), base(base) {}
  std::vector<AccessCounts> all, sampled;  // of all workgroups, of the recorded ones
  Shapes shapes;
  LineCounts atomics;
  const u64
      base;  // subtracted from addresses, so that the address space of the host does not matter
};

// The part of a first-level cache (32 KB) that a workgroup has for itself: tags only, least recently
// used out first. Waves of a workgroup run in step. So a line that another wave fetched at the same
// point of its trace, or later, is still under way.
class TagCache {
 public:
  enum class Touch { kMissed, kUnderWay, kHit };
  explicit TagCache(u32 sets) : sets_(std::max(1u, std::min(sets, kSets))) {
    memset(tags_, 0xff, sizeof tags_);
  }
  Touch touch(u64 line, u32 wave, size_t position);

 private:
  static constexpr u32 kSets = 64, kWays = 4;
  struct Fetch {
    u32 used = 0, wave = 0;
    size_t position = 0;
  };
  const u32 sets_;
  u64 tags_[kSets][kWays];
  Fetch fetches_[kSets][kWays];
  u32 clock_ = 0;
};

class Recorder {
 public:
  // `timed`: the instructions of the program. `l1_sets`: of the L1, see TagCache.
  Recorder(Accounts& accounts, u32 waves, const TimedInst* timed, u32 l1_sets)
      : traces(waves), accounts_(accounts), timed_(timed), l1_(l1_sets) {}
  void block(u32 wave, u32 block) {
    if (traces[wave].size() < kMaxTrace) traces[wave].push_back(block);
  }
  // `first_line`: the line of the shape's start.
  void global(u32 wave, u32 instruction, const Shape& shape, u64 first_line, bool write);
  void scratch(u32 instruction, u64 lanes, u32 size, bool write);
  void scalar(u32 instruction, u64 address, u32 size);
  void lds(u32 instruction, const u32* places, u64 lanes, u32 size);

  std::vector<std::vector<u32>> traces;  // by wave: block numbers in order

 private:
  static constexpr size_t kMaxTrace = 1 << 16;
  Accounts& accounts_;
  const TimedInst* timed_;
  TagCache l1_;
  std::unordered_set<u64> fetched_;  // lines
};
