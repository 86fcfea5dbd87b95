// What the blocks of recorded workgroups cost, and what classes of workgroups cost because of that.
#pragma once

#include "timing/replay.h"

// The lines, cycles and latencies of a recorded workgroup.
Sample sample_of(const Recorder& recorder, const ModelInput& input, const ModelRequest& request);

// Costs of recorded workgroups. No figure mixes unlike ones: a class that was recorded costs what
// its recorded member with most memory work costs. Another class pays, for each block, the most
// that it costs recorded workgroups which run it about as often.
class Costs {
 public:
  Costs(const ModelInput& input, const ModelRequest& request, const std::vector<Sample>& samples);

  // Adds a replay of recorded workgroups.
  void add(const std::vector<size_t>& group, const Replayed& replayed);
  // Call it after the last `add`.
  void finish();
  struct ClassCost {
    double cycles;   // from the begin of a workgroup to its end
    double guessed;  // of them, in blocks that no recorded wave ran about as often
    bool recorded;   // whether a recorded workgroup belongs to the class
  };
  ClassCost of_class(const Classes::Class& work_class, u32 number) const;
  bool replayed(u32 block) const { return !by_count_[block].empty(); }
  // The cycles by which a workgroup of a class takes longer than the recorded one that stands for
  // it, which fetched fewer lines. `own`: its lines that no other workgroup read. `read`: all.
  double unseen_fetches(u32 number, u64 own, u64 read) const;
  // The largest share of its workgroup's time that a wave waits for memory, in long workgroups.
  double waiting() const;

 private:
  // Recorded workgroups that did the same, replayed as the one with most memory work.
  struct Recorded {
    std::vector<double> cycles;
    std::vector<u64> executions;
    std::vector<double> slowest;
    double length = 0, memory_wait = 0, waves = 0;  // sums over replays; waves: cycles of all
    u64 replays = 0;
  };
  struct Bucket {
    int octave;
    double cost;
  };
  double cost(const Recorded& recorded, u32 block) const;
  // Of one execution by a wave that runs a block `count` times, and the part that is a guess.
  ClassCost cost(u32 block, u64 count) const;
  double unhidden(u32 block) const;
  void note(u32 block, u64 count, double cycles);
  double slowest_share(const Recorded& recorded) const;

  const ModelInput& input_;
  const ModelRequest& request_;
  const std::vector<Sample>& samples_;
  std::vector<Recorded> recorded_;              // by sample; only those that were replayed
  std::vector<std::vector<size_t>> of_class_;   // by class: its recorded members
  std::vector<std::vector<Bucket>> by_count_;   // by block, ascending
};
