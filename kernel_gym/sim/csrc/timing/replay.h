// Replays recorded workgroups together on one compute unit, in order within each wave, with the
// units that waves share.
#pragma once

#include <queue>

#include "timing/excerpt.h"

constexpr int kSimds = 4;
constexpr double kIssue = 4;  // cycles between instructions of one wave
constexpr double kBranchCycles = 8;

// Mean behaviour of a memory instruction.
struct AccessTime {
  double cycles = 0;   // of the shared unit
  double latency = 0;
};

struct Pending {
  double done;
  Stall kind;
};

struct ReplayWave {
  double time = 0;
  u32 workgroup = 0;
  int simd = 0;
  const std::vector<u32>* trace = nullptr;
  size_t position = 0;   // in the trace
  std::vector<Gap> gaps;  // that the budget omits
  size_t next_gap = 0;
  double arrived = 0;    // at the barrier
  u32 next = 0, last = 0;  // instructions of the current block
  std::vector<Pending> memory, local;  // outstanding operations
  size_t memory_head = 0, local_head = 0;
  std::vector<double> matrix_ready;   // by row
};

// The results of replays, summed.
struct Replayed {
  explicit Replayed(size_t instructions) : spent(instructions, 0), executions(instructions, 0) {}
  void add(const Replayed& other, u64 times);

  std::vector<double> spent;     // cycles of waves, by instruction
  std::vector<u64> executions;   // by instruction
  double busy[8] = {};           // cycles, by Unit
  double stalls[kStalls] = {};   // cycles of waves, by Stall
  double cycles = 0;             // lengths of the replays
  double workgroup_cycles = 0, wave_cycles = 0;
  u64 instructions = 0;
};

// One compute unit with the workgroups that share it.
class Replay {
 public:
  Replay(const ModelInput& input, const ModelRequest& request, const std::vector<AccessTime>& times)
      : input_(input), request_(request), times_(times), found_(times.size()) {}

  // Replays recorded workgroups, by number of the sample, within a budget of instructions.
  const Replayed& run(const std::vector<size_t>& workgroups, u64 budget);

 private:
  using Entry = std::pair<double, u32>;  // time, wave

  void start(const std::vector<size_t>& workgroups, u64 budget);
  void shorten(double share);
  bool waits_for_turn(const ReplayWave& wave) const;
  bool advance(ReplayWave& wave);  // false at the end of the trace
  bool step(ReplayWave& wave, u32 number);  // false if the wave waits for others
  void finish(const ReplayWave& wave);
  void vector(ReplayWave& wave, const TimedInst& inst);
  void matrix(ReplayWave& wave, const TimedInst& inst);
  void memory(ReplayWave& wave, const TimedInst& inst, u32 index);
  void wait(ReplayWave& wave, const TimedInst& inst);
  void release(u32 workgroup, double now);
  void charge(Stall reason, double cycles) { found_.stalls[(int)reason] += cycles; }
  double use(double& free_at, double from, double cycles, Unit unit) {
    const double begin = std::max(free_at, from);
    free_at = begin + cycles;
    found_.busy[(int)unit] += cycles;
    return begin;
  }

  const ModelInput& input_;
  const ModelRequest& request_;
  const std::vector<AccessTime>& times_;
  Replayed found_;
  std::vector<ReplayWave> waves_;
  std::vector<std::vector<u32>> waiting_;  // by workgroup: waves at the barrier
  std::vector<u32> alive_;
  std::vector<double> ends_;               // by workgroup
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue_;
  double vector_free_[kSimds] = {}, matrix_free_[kSimds] = {}, scalar_free_[kSimds] = {};
  double lds_free_ = 0, memory_free_ = 0;
};
