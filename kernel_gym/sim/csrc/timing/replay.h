// Replays recorded workgroups together on one compute unit, in order within each wave, with the
// units that waves share.
#pragma once

#include <algorithm>
#include <queue>

#include "timing/excerpt.h"

constexpr int kSimds = 4;
constexpr double kIssue = 4;  // cycles between instructions of one wave
constexpr double kBranchCycles = 8;

// What one execution of a memory instruction costs.
struct AccessTime {
  double cycles = 0;   // of the shared unit
  double latency = 0;
  double held = 0;  // cycles that each missed line takes a place among the lines under way
  u32 lines = 0;    // of a load that missed the L1
};

// A memory event with its time.
struct TimedEvent {
  u32 position, instruction;
  AccessTime time;
};

// A recorded workgroup, ready for replay.
struct Sample {
  const Recorder* recorder = nullptr;
  std::vector<std::vector<TimedEvent>> events;  // by wave
  double memory = 0;    // cycles and latencies of all events
  double fetching = 0;  // latencies of the lines that it fetched, each once
  u64 fetched = 0, fetches = 0;  // such lines, and loads that fetched any
};

// The results of a workgroup in a replay.
struct ReplayedWorkgroup {
  std::vector<double> cycles;    // of all waves, by block
  std::vector<u64> executions;   // by block
  std::vector<double> slowest;   // cycles of one execution, by block, in the slowest wave
  double length = 0;             // until its last wave ends
  double memory_wait = 0;        // cycles that one wave waited for memory, at most
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
  const std::vector<TimedEvent>* events = nullptr;
  size_t position = 0;   // in the trace
  size_t next_event = 0;
  u32 block = 0;
  double memory_wait = 0;
  std::vector<double> block_cycles;  // by block
  std::vector<u64> block_executions;
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
  u64 instructions = 0;
  std::vector<ReplayedWorkgroup> workgroups;  // of one replay, not summed
};

// One compute unit with the workgroups that share it.
class Replay {
 public:
  Replay(const ModelInput& input, const ModelRequest& request, const std::vector<Sample>& samples)
      : input_(input),
        request_(request),
        samples_(samples),
        found_(input.instructions.size()),
        misses_(std::max<size_t>(1, (size_t)request.miss_lines), 0.0) {}

  // Replays recorded workgroups, by number of the sample, within a budget of instructions.
  const Replayed& run(const std::vector<size_t>& workgroups, u64 budget);

 private:
  using Entry = std::pair<double, u32>;  // time, wave

  void start(const std::vector<size_t>& workgroups, u64 budget);
  AccessTime time_of(ReplayWave& wave, u32 index) const;
  void shorten(double share);
  bool waits_for_turn(const ReplayWave& wave) const;
  bool advance(ReplayWave& wave);  // false at the end of the trace
  bool step(ReplayWave& wave, u32 number);  // false if the wave waits for others
  void finish(const ReplayWave& wave);
  void vector(ReplayWave& wave, const TimedInst& inst);
  void matrix(ReplayWave& wave, const TimedInst& inst);
  void memory(ReplayWave& wave, const TimedInst& inst, u32 index);
  double miss(double from, const AccessTime& time);  // when the last line leaves
  void scalar_memory(ReplayWave& wave, u32 index);
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
  const std::vector<Sample>& samples_;
  Replayed found_;
  std::vector<ReplayWave> waves_;
  std::vector<std::vector<u32>> waiting_;  // by workgroup: waves at the barrier
  std::vector<u32> alive_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue_;
  double vector_free_[kSimds] = {}, matrix_free_[kSimds] = {}, scalar_free_[kSimds] = {};
  double lds_free_ = 0, memory_free_ = 0;
  std::vector<double> misses_;  // when the places of lines under way are free, in order of use
  size_t next_miss_ = 0;
};
