// The data that workgroups of one launch hand to each other through memory, for the timing model. A
// workgroup that reads a value cannot do so before another one has written it.
//
// Only programs that can wait for other workgroups are watched
// (kernel_gym/sim/compiler/timing_tables.py). All their accesses are, so that the
// instructions of a handover do not matter.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "timing/timing.h"
#include "wave.h"

// One event of a workgroup. The number of an event is its index plus one; 0 is no event.
struct ShareEvent {
  enum Kind : u32 {
    kWrites,  // others may read what it wrote
    kFollows,  // the next write of this workgroup does not happen before `source`
    kWaits,  // the workgroup continues when it has read what `source` wrote
    kWaitsAtomic,  // the same, in one operation with a write
  };
  u32 workgroup;
  u32 source;  // number of the write
  Kind kind;
  u64 progress;  // of the wave, see Wave::progress
};

class Sharing {
 public:
  Sharing(const std::vector<TimedInst>& table, u64 workgroups)
      : table_(table), totals_(workgroups, 0) {}

  // Before an access of a wave to global memory.
  void access(const Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size);
  // A workgroup has arrived at the grid barrier; a workgroup leaves it.
  void arrive(u32 workgroup, u64 progress);
  void depart(u32 workgroup, u64 progress);
  void end(u32 workgroup, u64 progress) { totals_[workgroup] = progress; }

  const std::vector<ShareEvent>& events() const { return events_; }
  const std::vector<u64>& totals() const { return totals_; }  // progress at the end, by workgroup
  bool overflowed() const { return overflowed_; }

 private:
  static constexpr u64 kPageWords = 1024;
  static constexpr size_t kMostEvents = 1 << 23;
  using Page = std::unique_ptr<u32[]>;

  u32* page(u64 number);
  void add(const ShareEvent& event);
  u32 write(u32 workgroup, u64 progress, bool follows);

  const std::vector<TimedInst>& table_;
  std::vector<u64> totals_;
  std::vector<ShareEvent> events_;
  std::unordered_map<u64, Page> pages_;  // by word: number of the last write
  u64 last_number_ = ~0ull;
  u32* last_page_ = nullptr;
  u32 barrier_ = 0;  // the last arrival
  bool overflowed_ = false;
};
