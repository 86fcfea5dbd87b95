// Records a sampled workgroup for the timing model: the blocks of each wave and, for every
// execution of a memory instruction, cache lines and LDS bank conflicts.
#pragma once

#include <algorithm>
#include <unordered_map>
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
  u64 worst = 0;       // most segments of one execution

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
    worst = std::max(worst, other.worst);
  }
};
static_assert(sizeof(AccessCounts) == 88, "shared with Python");

// Counts an access of lanes that fill [low, high).
SIM_INLINE void count_dense(AccessCounts& counts, u64 lanes, u64 bytes, u64 low, u64 high,
                            bool write) {
  counts.executions++;
  counts.lanes += lanes;
  counts.bytes += bytes;
  counts.writes += write;
  const u64 segments = ((high - 1) >> 6) - (low >> 6) + 1;
  counts.segments += segments;
  counts.worst = std::max(counts.worst, segments);
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
  counts.worst = std::max<u64>(counts.worst, shape.segments);
  counts.lines += shape.line_count;
}

// Counts an access to scratch, which is interleaved so that one variable of a wave is contiguous.
void count_scratch(AccessCounts& counts, u64 lanes, u32 size, bool write);

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

// The part of a first-level cache that a workgroup has for itself: tags only, least recently used
// out first. Waves of a workgroup run in step. So a line that another wave fetched at the same
// point of its trace, or later, is still under way.
class TagCache {
 public:
  enum class Touch { kMissed, kUnderWay, kHit };
  explicit TagCache(u32 sets) : sets_(std::max(1u, std::min(sets, kSets))) { clear(); }
  Touch touch(u64 line, u32 wave, size_t position);
  void clear() { memset(tags_, 0xff, sizeof tags_); }

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

// One execution of a memory instruction by a recorded wave, in the order of the trace.
struct MemoryEvent {
  u32 position;     // blocks of the trace until then, with its own
  u32 instruction;
  u32 first_line;   // in WaveTrace::lines
  u16 line_count;   // lines that no wave has fetched before this point of the trace
  u16 first_count;  // those that this one fetches
  u8 late;          // waited for something beyond the L1
  u8 written;       // the lines are those of an atomic operation
  float cycles;     // of the unit
  u32 moved;        // bytes between the compute unit and the L2
};

// What a recorded wave did.
struct WaveTrace {
  std::vector<u32> blocks;  // numbers of the blocks in order
  std::vector<MemoryEvent> events;
  std::vector<u64> lines;
  bool full = false;        // the rest is not recorded

  bool operator<(const WaveTrace& other) const { return blocks < other.blocks; }
};

class Recorder {
 public:
  // `timed`: the instructions of the program. `l1_sets`: of the L1, see TagCache. `samples`: recorded
  // workgroups of the launch, which share the memory for traces.
  Recorder(Accounts& accounts, u32 waves, const TimedInst* timed, u32 l1_sets, u64 samples)
      : traces(waves),
        accounts_(accounts),
        timed_(timed),
        l1_(l1_sets),
        scalar_(l1_sets),
        most_blocks_(std::max(kLeastBlocks, kAllBlocks / std::max<u64>(1, waves * samples))) {}
  void block(u32 wave, u32 block) {
    WaveTrace& trace = traces[wave];
    trace.full |= trace.blocks.size() == most_blocks_ || trace.events.size() >= 8 * most_blocks_;
    if (!trace.full) trace.blocks.push_back(block);
  }
  // `first_line`: the line of the shape's start.
  void global(u32 wave, u32 instruction, const Shape& shape, u64 first_line, bool write);
  void scratch(u32 wave, u32 instruction, u64 lanes, u32 size, bool write);
  void scalar(u32 wave, u32 instruction, u64 address, u32 size);
  void lds(u32 wave, u32 instruction, const u32* places, u64 lanes, u32 size);
  // An instruction empties the caches of the compute unit.
  void empty_caches(bool scalar) { (scalar ? scalar_ : l1_).clear(); }

  std::vector<WaveTrace> traces;  // by wave
  u32 work_class = 0;             // of the workgroup, see Classes
  u64 executed = 0;               // instructions
  u64 workgroup = 0;              // its number

 private:
  static constexpr u64 kLeastBlocks = 1 << 16, kAllBlocks = 1 << 20;
  MemoryEvent* event(u32 wave, u32 instruction);
  void fetch(u32 wave, MemoryEvent* event, AccessCounts& counts, u64 line, bool missed);

  Accounts& accounts_;
  const TimedInst* timed_;
  TagCache l1_, scalar_;
  const u64 most_blocks_;  // of a trace
  std::unordered_map<u64, std::pair<u32, size_t>> fetched_;  // by line: first wave, its position
};
