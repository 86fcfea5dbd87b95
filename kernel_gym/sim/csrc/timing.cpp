#include "timing.h"

#include <algorithm>
#include <queue>

namespace {

constexpr int kSimds = 4;
constexpr double kIssue = 4;          // cycles between instructions of one wave
constexpr double kBranchCycles = 8;
constexpr double kBarrierCycles = 8;
constexpr double kMatrixResult = 8;   // from the end of a matrix operation to its use
constexpr double kLdsQueue = 16;      // cycles an LDS instruction may wait in its queue
constexpr double kMemoryQueue = 64;   // cycles a memory instruction may wait in its queue
constexpr u32 kMaxRows = 1024;         // vector and accumulation registers
constexpr double kSegmentBytes = 64, kLineBytes = 128, kAddressLanes = 16;
constexpr u64 kScheduled = 1 << 16;  // workgroups scheduled one by one

// Mean behaviour of a memory instruction.
struct AccessTime {
  double cycles = 0;   // of the shared unit
  double latency = 0;
};

// `counts` are exact; how much of them misses the L1 is known of the samples alone.
AccessTime memory_time(const AccessCounts& counts, const AccessCounts& sampled,
                       const ModelRequest& request, bool is_store) {
  if (!counts.executions) return {};
  const double n = (double)counts.executions;
  const double missing = sampled.lines ? (double)sampled.l1_misses / sampled.lines : 1.0;
  const double moved = is_store ? counts.segments * kSegmentBytes
                                : counts.lines * missing * kLineBytes;
  AccessTime time;
  time.cycles = std::max({counts.lanes / kAddressLanes, counts.bytes / kSegmentBytes,
                          (double)counts.segments, moved / request.l2_bytes_per_cycle}) / n;
  if (is_store) {
    time.latency = request.store_latency;
  } else {
    // One late line delays the whole instruction.
    time.latency = missing > 0.02 ? request.miss_latency : request.l1_latency;
  }
  return time;
}

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
  size_t skip_from = 0, skip_to = 0;  // middle part that the budget leaves out
  double arrived = 0;    // at the barrier
  u32 next = 0, last = 0;  // instructions of the current block
  std::vector<Pending> memory, local;  // outstanding operations
  size_t memory_head = 0, local_head = 0;
  std::vector<double> matrix_ready;   // by row
};

// One compute unit with the workgroups that share it.
class Replay {
 public:
  Replay(const ModelInput& input, ModelRequest& request, const std::vector<AccessTime>& times,
         std::vector<double>& spent, std::vector<u64>& executions)
      : input_(input), request_(request), times_(times), spent_(spent), executions_(executions) {}

  // Replays `copies` of the samples: `first` and every `stride`th after it, round and round. The
  // neighbours of a compute unit come from all over the grid, as on hardware.
  void run(size_t first, size_t stride, u64 budget);
  double cycles() const { return end_; }
  double workgroup_cycles() const;  // summed over the workgroups
  double wave_cycles() const { return wave_cycles_; }

 private:
  using Entry = std::pair<double, u32>;  // time, wave

  void start(size_t first, size_t stride, u64 budget);
  bool advance(ReplayWave& wave);  // false at the end of the trace
  bool step(ReplayWave& wave, u32 number);  // false if the wave waits for others
  void finish(const ReplayWave& wave);
  void vector(ReplayWave& wave, const TimedInst& inst);
  void matrix(ReplayWave& wave, const TimedInst& inst);
  void memory(ReplayWave& wave, const TimedInst& inst, u32 index);
  void wait(ReplayWave& wave, const TimedInst& inst);
  void release(u32 workgroup);
  void charge(Stall reason, double cycles) { request_.stalls[(int)reason] += cycles; }
  double use(double& free_at, double from, double cycles, Unit unit) {
    const double begin = std::max(free_at, from);
    free_at = begin + cycles;
    request_.busy[(int)unit] += cycles;
    return begin;
  }

  const ModelInput& input_;
  ModelRequest& request_;
  const std::vector<AccessTime>& times_;
  std::vector<double>& spent_;
  std::vector<u64>& executions_;
  std::vector<ReplayWave> waves_;
  std::vector<std::vector<u32>> waiting_;  // by workgroup: waves at the barrier
  std::vector<u32> alive_;
  std::vector<double> ends_;               // by workgroup
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue_;
  double vector_free_[kSimds] = {}, matrix_free_[kSimds] = {}, scalar_free_[kSimds] = {};
  double lds_free_ = 0, memory_free_ = 0;
  double end_ = 0, wave_cycles_ = 0;
};

u64 length_of(const ModelInput& input, const std::vector<u32>& trace) {
  u64 total = 0;
  for (u32 block : trace) total += input.blocks[block].last - input.blocks[block].first;
  return total;
}

void Replay::start(size_t first, size_t stride, u64 budget) {
  const u32 copies = request_.copies;
  waiting_.resize(copies);
  u64 total = 0;
  for (u32 c = 0; c < copies; c++) {
    const Recorder& sample = *input_.samples[(first + c * stride) % input_.samples.size()];
    const u32 count = (u32)sample.traces.size();
    alive_.push_back(count);
    ends_.push_back(0);
    for (u32 w = 0; w < count; w++) {
      ReplayWave wave;
      wave.workgroup = c;
      wave.time = c * request_.workgroup_launch;
      wave.simd = (int)(waves_.size() % kSimds);
      wave.trace = &sample.traces[w];
      wave.matrix_ready.assign(kMaxRows, 0);
      total += length_of(input_, *wave.trace);
      queue_.push({wave.time, (u32)waves_.size()});
      waves_.push_back(std::move(wave));
    }
  }
  if (total <= budget) return;
  // The beginning and the end of each wave stand for the whole: every block still has its cost.
  for (ReplayWave& wave : waves_) {
    const size_t blocks = wave.trace->size();
    const size_t kept = std::max<size_t>(8, (size_t)((double)blocks * budget / total));
    if (kept >= blocks) continue;
    wave.skip_from = kept * 2 / 3;
    wave.skip_to = blocks - (kept - wave.skip_from);
  }
}

bool Replay::advance(ReplayWave& wave) {
  while (wave.next == wave.last) {
    if (wave.position == wave.skip_from && wave.skip_to) wave.position = wave.skip_to;
    if (wave.position == wave.trace->size()) return false;
    const BlockRange& block = input_.blocks[(*wave.trace)[wave.position++]];
    wave.next = block.first;
    wave.last = block.last;
  }
  return true;
}

void Replay::vector(ReplayWave& wave, const TimedInst& inst) {
  double from = wave.time;
  for (u16 row : inst.src_rows) {
    if (row != kNoRow) from = std::max(from, wave.matrix_ready[row]);
  }
  charge(Stall::kMatrixResult, from - wave.time);
  const double begin = use(vector_free_[wave.simd], from, inst.cycles, Unit::kVector);
  charge(Stall::kVectorBusy, begin - from);
  charge(Stall::kIssue, inst.cycles);
  wave.time = begin + inst.cycles;
}

// A matrix instruction issues through the vector unit's port and then works in the shadow of other
// instructions.
void Replay::matrix(ReplayWave& wave, const TimedInst& inst) {
  double from = wave.time;
  for (int i = 0; i < 3; i++) {
    // sums into the same registers follow each other without a gap
    if (inst.src_rows[i] == kNoRow || (i == 2 && inst.src_rows[i] == inst.dst_row)) continue;
    from = std::max(from, wave.matrix_ready[inst.src_rows[i]]);
  }
  charge(Stall::kMatrixResult, from - wave.time);
  const double port = std::max(from, vector_free_[wave.simd]);
  charge(Stall::kVectorBusy, port - from);
  const double begin = use(matrix_free_[wave.simd], port, inst.cycles, Unit::kMatrix);
  charge(Stall::kMatrixBusy, begin - port);
  charge(Stall::kIssue, kIssue);
  vector_free_[wave.simd] = begin + kIssue;
  const double ready = begin + inst.cycles + kMatrixResult;
  for (u32 r = 0; r < inst.dst_rows; r++) wave.matrix_ready[inst.dst_row + r] = ready;
  wave.time = begin + kIssue;
}

void Replay::memory(ReplayWave& wave, const TimedInst& inst, u32 index) {
  const AccessTime& time = times_[index];
  const bool local = inst.unit == Unit::kLds;
  double& free_at = local ? lds_free_ : memory_free_;
  const double begin = use(free_at, wave.time, time.cycles, inst.unit);
  const double issued = std::max(wave.time, begin - (local ? kLdsQueue : kMemoryQueue));
  charge(local ? Stall::kLdsQueue : Stall::kMemoryQueue, issued - wave.time);
  charge(Stall::kIssue, kIssue);
  if (local) {
    wave.local.push_back({begin + time.cycles + request_.lds_latency, Stall::kLds});
  } else {
    wave.memory.push_back({begin + time.cycles + time.latency, Stall::kMemory});
  }
  wave.time = issued + kIssue;
}

void Replay::wait(ReplayWave& wave, const TimedInst& inst) {
  // Operations complete in order: waiting for all but the last `limit`.
  const auto drain = [&](std::vector<Pending>& pending, size_t& head, u16 limit) {
    while (pending.size() - head > limit) {
      const Pending& next = pending[head++];
      if (next.done <= wave.time) continue;
      charge(next.kind, next.done - wave.time);
      wave.time = next.done;
    }
    if (head == pending.size()) {
      pending.clear();
      head = 0;
    }
  };
  if (inst.vector_memory_limit != 0xffff) {
    drain(wave.memory, wave.memory_head, inst.vector_memory_limit);
  }
  if (inst.local_limit != 0xffff) drain(wave.local, wave.local_head, inst.local_limit);
  charge(Stall::kIssue, 1);
  wave.time += 1;
}

// Lets the waves of a workgroup go on when all that still run have reached the barrier.
void Replay::release(u32 workgroup) {
  std::vector<u32>& waiting = waiting_[workgroup];
  if (waiting.empty() || waiting.size() < alive_[workgroup]) return;
  double last = 0;
  for (u32 i : waiting) last = std::max(last, waves_[i].time);
  for (u32 i : waiting) {
    ReplayWave& wave = waves_[i];
    const double waited = last + kBarrierCycles - wave.time;
    charge(Stall::kBarrier, waited);
    spent_[wave.next - 1] += waited;
    wave.time = last + kBarrierCycles;
    queue_.push({wave.time, i});
  }
  waiting.clear();
}

void Replay::finish(const ReplayWave& wave) {
  const double begin = wave.workgroup * request_.workgroup_launch;
  wave_cycles_ += wave.time - begin;
  ends_[wave.workgroup] = std::max(ends_[wave.workgroup], wave.time - begin);
  end_ = std::max(end_, wave.time);
  alive_[wave.workgroup]--;
  release(wave.workgroup);
}

bool Replay::step(ReplayWave& wave, u32 number) {
  const u32 index = wave.next++;
  const TimedInst& inst = input_.instructions[index];
  const double before = wave.time;
  request_.replayed++;
  executions_[index]++;
  switch (inst.unit) {
    case Unit::kVector:
      vector(wave, inst);
      break;
    case Unit::kMatrix:
      matrix(wave, inst);
      break;
    case Unit::kLds:
    case Unit::kMemory:
      memory(wave, inst, index);
      break;
    case Unit::kScalarMemory:
      wave.local.push_back({wave.time + request_.scalar_latency, Stall::kScalarMemory});
      charge(Stall::kIssue, kIssue);
      wave.time += kIssue;
      break;
    case Unit::kWait:
      wait(wave, inst);
      break;
    case Unit::kBarrier:
      waiting_[wave.workgroup].push_back(number);
      release(wave.workgroup);
      return false;
    case Unit::kBranch:
      charge(Stall::kIssue, kBranchCycles);
      wave.time += kBranchCycles;
      break;
    case Unit::kIdle:
      charge(Stall::kIssue, inst.cycles);
      wave.time += inst.cycles;
      break;
    case Unit::kScalar: {
      const double begin = use(scalar_free_[wave.simd], wave.time, 1, Unit::kScalar);
      charge(Stall::kIssue, begin + kIssue - wave.time);
      wave.time = begin + kIssue;
      break;
    }
    case Unit::kFree:
      break;
  }
  spent_[index] += wave.time - before;
  return true;
}

void Replay::run(size_t first, size_t stride, u64 budget) {
  start(first, stride, budget);
  while (!queue_.empty()) {
    const u32 number = queue_.top().second;
    queue_.pop();
    ReplayWave& wave = waves_[number];
    for (;;) {
      if (!advance(wave)) {
        finish(wave);
        break;
      }
      if (!step(wave, number)) break;
      if (!queue_.empty() && Entry(wave.time, number) > queue_.top()) {
        queue_.push({wave.time, number});
        break;
      }
    }
  }
}

double Replay::workgroup_cycles() const {
  double total = 0;
  for (double end : ends_) total += end;
  return total;
}

// ---- from the replays to the launch
// What an instruction costs a wave that hides nothing.
double unhidden(const TimedInst& inst, const AccessTime& time, const ModelRequest& request) {
  switch (inst.unit) {
    case Unit::kLds:
      return time.cycles + request.lds_latency;
    case Unit::kMemory:
      return time.cycles + time.latency;
    case Unit::kScalarMemory:
      return request.scalar_latency;
    case Unit::kVector:
    case Unit::kMatrix:
    case Unit::kIdle:
      return std::max<double>(kIssue, inst.cycles);
    case Unit::kBranch:
    case Unit::kBarrier:
      return kBranchCycles;
    default:
      return kIssue;
  }
}

// Cycles of a wave by block, and whether a replay ran it.
struct BlockCost {
  double cycles = 0;
  double instructions = 0;
  bool replayed = false;
};

std::vector<BlockCost> block_costs(const ModelInput& input, const ModelRequest& request,
                                   const std::vector<AccessTime>& times,
                                   const std::vector<u64>& executions,
                                   std::vector<double>& spent) {
  std::vector<BlockCost> costs(input.blocks.size());
  for (size_t b = 0; b < costs.size(); b++) {
    costs[b].instructions = input.blocks[b].last - input.blocks[b].first;
    costs[b].replayed = true;
    for (u32 i = input.blocks[b].first; i < input.blocks[b].last; i++) {
      costs[b].replayed &= executions[i] > 0;
      spent[i] = executions[i] ? spent[i] / executions[i]
                               : unhidden(input.instructions[i], times[i], request);
      costs[b].cycles += spent[i];
    }
  }
  return costs;
}

// When the last workgroup ends, if each goes to the slot that is free first. `cycles` are those of
// a workgroup, by bin.
double schedule(const std::vector<double>& cycles, const Bins& bins, u64 count, u64 slots) {
  const double longest = *std::max_element(cycles.begin(), cycles.end());
  if (count <= slots) return longest;
  if (count > kScheduled) {
    double total = 0;
    for (u64 b = 0; b < bins.size(); b++) {
      total += cycles[b] * (double)((b + 1 < bins.size() ? bins.first(b + 1) : count) -
                                    bins.first(b));
    }
    return std::max(longest, total / (double)slots + longest / 2);
  }
  std::priority_queue<double, std::vector<double>, std::greater<double>> free_at;
  double end = 0;
  u64 bin = 0;
  for (u64 w = 0; w < count; w++) {
    while (bin + 1 < bins.size() && w >= bins.first(bin + 1)) bin++;
    double begin = 0;
    if (free_at.size() == slots) {
      begin = free_at.top();
      free_at.pop();
    }
    free_at.push(begin + cycles[bin]);
    end = std::max(end, begin + cycles[bin]);
  }
  return end;
}

std::vector<AccessTime> access_times(const ModelInput& input, const ModelRequest& request) {
  std::vector<AccessTime> times(input.instructions.size());
  for (size_t i = 0; i < times.size(); i++) {
    const TimedInst& inst = input.instructions[i];
    const AccessCounts& sampled = input.sampled[i];
    if (inst.unit == Unit::kMemory) {
      times[i] = memory_time(input.accesses[i], sampled, request, inst.is_store);
    } else if (inst.unit == Unit::kLds && sampled.executions) {
      times[i].cycles = std::max(1.0, (double)sampled.lds_cycles / sampled.executions);
    } else if (inst.unit == Unit::kLds) {
      times[i].cycles = inst.cycles ? inst.cycles : request.unsampled_lds;
    }
  }
  return times;
}

}  // namespace

void run_model(const ModelInput& input, ModelRequest& request, std::vector<double>& spent) {
  const std::vector<AccessTime> times = access_times(input, request);
  std::vector<u64> executions(input.instructions.size(), 0);
  spent.assign(input.instructions.size(), 0);
  const size_t samples = input.samples.size();
  if (!samples) return;
  const size_t runs = (samples + request.copies - 1) / request.copies;
  double workgroup_cycles = 0, wave_cycles = 0;
  for (size_t r = 0; r < runs; r++) {
    Replay replay(input, request, times, spent, executions);
    replay.run(r, runs, request.instruction_budget / runs);
    request.replay_cycles += replay.cycles();
    workgroup_cycles += replay.workgroup_cycles();
    wave_cycles += replay.wave_cycles();
  }
  const std::vector<BlockCost> costs = block_costs(input, request, times, executions, spent);
  // A workgroup lasts as long as its slowest wave.
  const double slowest = wave_cycles > 0 ? workgroup_cycles / wave_cycles : 1.0 / request.waves;
  std::vector<double> cycles(input.bins.size());
  std::vector<double> totals(costs.size(), 0);
  double all = 0, explained = 0;
  for (u64 bin = 0; bin < cycles.size(); bin++) {
    const u64 end = bin + 1 < cycles.size() ? input.bins.first(bin + 1) : request.workgroups;
    const u64* counts = input.bins.counts(bin);
    double sum = 0;
    for (size_t b = 0; b < costs.size(); b++) {
      const double count = (double)counts[b];
      sum += count * costs[b].cycles;
      totals[b] += count;
      all += count * costs[b].instructions;
      explained += costs[b].replayed ? count * costs[b].instructions : 0;
    }
    cycles[bin] = sum * slowest / (double)(end - input.bins.first(bin));
  }
  for (size_t b = 0; b < costs.size(); b++) {
    for (u32 i = input.blocks[b].first; i < input.blocks[b].last; i++) spent[i] *= totals[b];
  }
  request.explained = all > 0 ? explained / all : 1;
  request.makespan = schedule(cycles, input.bins, request.workgroups, request.slots);
}
