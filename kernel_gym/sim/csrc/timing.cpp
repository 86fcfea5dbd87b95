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
constexpr double kSegmentBytes = 64, kLineBytes = 128, kAddressLanes = 16;
constexpr size_t kScheduled = 1 << 16;  // workgroups scheduled one by one

// Mean behaviour of a memory instruction.
struct AccessTime {
  double cycles = 0;   // of the shared unit
  double latency = 0;
};

AccessTime memory_time(const AccessCounts& counts, const ModelRequest& request, bool is_store) {
  if (!counts.executions) return {};
  const double n = (double)counts.executions;
  const double bytes = counts.bytes / n, lines = counts.lines / n, misses = counts.l1_misses / n;
  const double moved = is_store ? counts.segments / n * kSegmentBytes : misses * kLineBytes;
  AccessTime time;
  time.cycles = std::max({counts.lanes / n / kAddressLanes, bytes / kSegmentBytes,
                          counts.segments / n, moved / request.l2_bytes_per_cycle});
  if (is_store) {
    time.latency = request.store_latency;
  } else {
    const double missing = lines > 0 ? misses / lines : 0;
    const double far = request.l2_latency +
                       (request.hbm_latency - request.l2_latency) * request.far_fraction;
    // One late line delays the whole instruction.
    time.latency = missing > 0.02 ? far : request.l1_latency;
  }
  return time;
}

struct ReplayWave {
  double time = 0;
  u32 workgroup = 0;
  int simd = 0;
  const std::vector<u32>* trace = nullptr;
  size_t position = 0;   // in the trace
  u32 next = 0, last = 0;  // instructions of the current block
  std::vector<double> memory, local;  // completion times of outstanding operations
  size_t memory_head = 0, local_head = 0;
  std::vector<double> matrix_ready;   // by row
};

// One compute unit with several copies of a workgroup.
class Replay {
 public:
  Replay(const ModelInput& input, const ModelRequest& request,
         const std::vector<AccessTime>& times, std::vector<double>& spent)
      : input_(input), request_(request), times_(times), spent_(spent) {}

  // Cycles until all copies end; scaled up when the budget ends first.
  double run(const Recorder& sample, u64 budget);
  u64 replayed() const { return replayed_; }
  const double* busy() const { return busy_; }

 private:
  using Entry = std::pair<double, u32>;  // time, wave

  void start(const Recorder& sample);
  bool advance(ReplayWave& wave);  // false at the end of the trace
  void step(ReplayWave& wave, u32 number);
  void matrix(ReplayWave& wave, const TimedInst& inst);
  void memory(ReplayWave& wave, const TimedInst& inst, u32 index);
  void wait(ReplayWave& wave, const TimedInst& inst);
  void barrier(ReplayWave& wave, u32 number);
  double use(double& free_at, double from, double cycles, Unit unit) {
    const double begin = std::max(free_at, from);
    free_at = begin + cycles;
    busy_[(int)unit] += cycles;
    return begin;
  }

  const ModelInput& input_;
  const ModelRequest& request_;
  const std::vector<AccessTime>& times_;
  std::vector<double>& spent_;
  std::vector<ReplayWave> waves_;
  std::vector<std::vector<u32>> waiting_;  // by workgroup: waves at the barrier
  std::vector<u32> alive_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue_;
  double vector_free_[kSimds] = {}, matrix_free_[kSimds] = {}, scalar_free_[kSimds] = {};
  double lds_free_ = 0, memory_free_ = 0;
  double busy_[8] = {};
  u64 replayed_ = 0;
  double end_ = 0;
};

void Replay::start(const Recorder& sample) {
  const u32 count = (u32)sample.traces.size();
  waves_.resize((size_t)count * request_.copies);
  waiting_.resize(request_.copies);
  alive_.assign(request_.copies, count);
  for (u32 i = 0; i < waves_.size(); i++) {
    ReplayWave& wave = waves_[i];
    wave.workgroup = i / count;
    wave.time = wave.workgroup * request_.workgroup_launch;
    wave.simd = i % kSimds;
    wave.trace = &sample.traces[i % count];
    wave.matrix_ready.assign(1024, 0);
    queue_.push({wave.time, i});
  }
}

bool Replay::advance(ReplayWave& wave) {
  while (wave.next == wave.last) {
    if (wave.position == wave.trace->size()) return false;
    const BlockRange& block = input_.blocks[(*wave.trace)[wave.position++]];
    wave.next = block.first;
    wave.last = block.last;
  }
  return true;
}

void Replay::matrix(ReplayWave& wave, const TimedInst& inst) {
  double from = wave.time;
  for (int i = 0; i < 3; i++) {
    // sums into the same registers follow each other without a gap
    if (inst.src_rows[i] == kNoRow || (i == 2 && inst.src_rows[i] == inst.dst_row)) continue;
    from = std::max(from, wave.matrix_ready[inst.src_rows[i]]);
  }
  const double begin = use(matrix_free_[wave.simd], from, inst.cycles, Unit::kMatrix);
  const double ready = begin + inst.cycles + kMatrixResult;
  for (u32 r = 0; r < inst.dst_rows; r++) wave.matrix_ready[inst.dst_row + r] = ready;
  wave.time = begin + kIssue;
}

void Replay::memory(ReplayWave& wave, const TimedInst& inst, u32 index) {
  const AccessTime& time = times_[index];
  if (inst.unit == Unit::kLds) {
    const double begin = use(lds_free_, wave.time, time.cycles, Unit::kLds);
    wave.local.push_back(begin + time.cycles + request_.lds_latency);
    wave.time = std::max(wave.time, begin - kLdsQueue) + kIssue;
  } else {
    const double begin = use(memory_free_, wave.time, time.cycles, Unit::kMemory);
    wave.memory.push_back(begin + time.cycles + time.latency);
    wave.time = std::max(wave.time, begin - kMemoryQueue) + kIssue;
  }
}

// Operations complete in order: waiting for all but the last `limit`.
double drain(std::vector<double>& pending, size_t& head, u16 limit, double time) {
  while (pending.size() - head > limit) time = std::max(time, pending[head++]);
  if (head == pending.size()) {
    pending.clear();
    head = 0;
  }
  return time;
}

void Replay::wait(ReplayWave& wave, const TimedInst& inst) {
  if (inst.vector_memory_limit != 0xffff) {
    wave.time = drain(wave.memory, wave.memory_head, inst.vector_memory_limit, wave.time);
  }
  if (inst.local_limit != 0xffff) {
    wave.time = drain(wave.local, wave.local_head, inst.local_limit, wave.time);
  }
  wave.time += 1;
}

void Replay::barrier(ReplayWave& wave, u32 number) {
  std::vector<u32>& waiting = waiting_[wave.workgroup];
  waiting.push_back(number);
  if (waiting.size() < alive_[wave.workgroup]) return;
  double last = 0;
  for (u32 i : waiting) last = std::max(last, waves_[i].time);
  for (u32 i : waiting) {
    waves_[i].time = last + kBarrierCycles;
    queue_.push({waves_[i].time, i});
  }
  waiting.clear();
}

void Replay::step(ReplayWave& wave, u32 number) {
  const u32 index = wave.next++;
  const TimedInst& inst = input_.instructions[index];
  const double before = wave.time;
  replayed_++;
  switch (inst.unit) {
    case Unit::kVector: {
      double from = wave.time;
      for (u16 row : inst.src_rows) {
        if (row != kNoRow) from = std::max(from, wave.matrix_ready[row]);
      }
      wave.time = use(vector_free_[wave.simd], from, inst.cycles, Unit::kVector) + inst.cycles;
      break;
    }
    case Unit::kMatrix:
      matrix(wave, inst);
      break;
    case Unit::kLds:
    case Unit::kMemory:
      memory(wave, inst, index);
      break;
    case Unit::kScalarMemory:
      wave.local.push_back(wave.time + request_.scalar_latency);
      wave.time += kIssue;
      break;
    case Unit::kWait:
      wait(wave, inst);
      break;
    case Unit::kBarrier:
      barrier(wave, number);
      return;
    case Unit::kBranch:
      wave.time += kBranchCycles;
      break;
    case Unit::kIdle:
      wave.time += inst.cycles;
      break;
    case Unit::kScalar:
      wave.time = use(scalar_free_[wave.simd], wave.time, 1, Unit::kScalar) + kIssue;
      break;
    case Unit::kFree:
      break;
  }
  spent_[index] += wave.time - before;
  queue_.push({wave.time, number});
}

double Replay::run(const Recorder& sample, u64 budget) {
  start(sample);
  u64 total = 0;
  for (const auto& trace : sample.traces) {
    for (u32 block : trace) total += input_.blocks[block].last - input_.blocks[block].first;
  }
  total *= request_.copies;
  while (!queue_.empty() && replayed_ < budget) {
    const u32 number = queue_.top().second;
    queue_.pop();
    ReplayWave& wave = waves_[number];
    if (advance(wave)) {
      step(wave, number);
    } else {
      alive_[wave.workgroup]--;
    }
    end_ = std::max(end_, wave.time);
  }
  return replayed_ ? end_ * (double)total / (double)replayed_ : end_;
}

// When the last workgroup ends, if each goes to the slot that is free first.
double schedule(const std::vector<u32>& instructions, double cycles_per_instruction, u64 slots) {
  const size_t count = instructions.size();
  const auto [low, high] = std::minmax_element(instructions.begin(), instructions.end());
  const double longest = *high * cycles_per_instruction;
  if (count <= slots) return longest;
  if (*low == *high) return (double)((count + slots - 1) / slots) * longest;
  if (count > kScheduled) {
    double total = 0;
    for (u32 n : instructions) total += n * cycles_per_instruction;
    return std::max(longest, total / (double)slots + longest / 2);
  }
  std::priority_queue<double, std::vector<double>, std::greater<double>> free_at;
  double end = 0;
  for (u32 n : instructions) {
    double begin = 0;
    if (free_at.size() == slots) {
      begin = free_at.top();
      free_at.pop();
    }
    free_at.push(begin + n * cycles_per_instruction);
    end = std::max(end, begin + n * cycles_per_instruction);
  }
  return end;
}

}  // namespace

void run_model(const ModelInput& input, ModelRequest& request, std::vector<double>& spent) {
  std::vector<AccessTime> times(input.instructions.size());
  for (size_t i = 0; i < times.size(); i++) {
    const TimedInst& inst = input.instructions[i];
    const AccessCounts& counts = input.accesses[i];
    if (inst.unit == Unit::kMemory) {
      times[i] = memory_time(counts, request, inst.is_store);
    } else if (inst.unit == Unit::kLds && counts.executions) {
      times[i].cycles = std::max(1.0, (double)counts.lds_cycles / counts.executions);
    } else if (inst.unit == Unit::kLds) {
      times[i].cycles = 2;  // permutes: all lanes in two passes
    }
  }
  spent.assign(input.instructions.size(), 0);
  double cycles = 0, instructions = 0;
  const u64 budget = request.instruction_budget / std::max<size_t>(1, input.samples.size());
  for (const Recorder* sample : input.samples) {
    Replay replay(input, request, times, spent);
    cycles += replay.run(*sample, budget);
    for (const auto& trace : sample->traces) {
      for (u32 block : trace) instructions += input.blocks[block].last - input.blocks[block].first;
    }
    for (int i = 0; i < 8; i++) request.busy[i] += replay.busy()[i];
    request.replayed += replay.replayed();
  }
  const double count = std::max<double>(1, (double)input.samples.size());
  request.workgroup_cycles = cycles / count;
  request.sampled_instructions = instructions;
  if (instructions > 0) {
    request.makespan =
        schedule(input.workgroup_instructions, cycles / instructions, request.slots);
  }
}
