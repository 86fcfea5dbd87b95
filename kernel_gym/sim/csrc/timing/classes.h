// What the workgroups of a launch executed. Workgroups that executed the same form a class.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "wave.h"

// How often waves ran a block: blocks that they did run, ascending.
using BlockCounts = std::vector<std::pair<u32, u64>>;

// What a workgroup executed: the counts of its waves, ascending, and how many waves have them.
struct Work {
  std::vector<std::pair<BlockCounts, u64>> waves;

  bool operator==(const Work& other) const { return waves == other.waves; }
  // Calls `visit` with each block, and how often all waves together ran it.
  template <class Visit>
  void each_block(const Visit& visit) const {
    for (const auto& [counts, alike] : waves) {
      for (const auto& [block, count] : counts) visit(block, count * alike);
    }
  }
};

struct WorkHash {
  size_t operator()(const Work& work) const;
};

// The classes of a launch. If they take too much memory, counts are rounded up until they do not,
// so that a class costs no less than any of its members. The result does not depend on the order in
// which threads add workgroups.
class Classes {
 public:
  struct Class {
    const Work* work;
    u64 members;
  };

  void begin(u64 workgroups);
  // Returns a number of the class. The numbers change in `finish`.
  // `counts`: by wave and block.
  u32 add(u64 workgroup, const std::vector<u64>& counts, u32 blocks);
  // Numbers the classes by their first workgroups.
  void finish();
  // The number after `finish` of a number that `add` returned.
  u32 number(u32 added) const { return order_[current(added)]; }
  const std::vector<Class>& all() const { return all_; }
  // By workgroup: its class. Empty if there are too many workgroups.
  const std::vector<u32>& places() const { return places_; }

 private:
  static constexpr u64 kMostPlaces = 1 << 22, kMostCounts = 1 << 20;
  static constexpr int kLevels = 4;
  struct Entry {
    u64 members, first;
    u32 id;
  };
  u32 current(u32 id) const;
  u32 insert(Work work, u64 members, u64 first, u32 id);
  void coarsen();

  std::mutex mutex_;
  std::unordered_map<Work, Entry, WorkHash> entries_;
  u64 held_ = 0;  // counts in `entries_`
  int level_ = 0;
  std::vector<u32> merged_;  // by id: the class that took its place, or itself
  std::vector<u32> order_;   // by id
  std::vector<Class> all_;
  std::vector<u32> places_;
};
