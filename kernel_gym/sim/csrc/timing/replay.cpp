#include "timing/replay.h"

#include <algorithm>

namespace {

constexpr double kBarrierCycles = 8;
constexpr double kMatrixResult = 8;   // from the end of a matrix operation to its use
constexpr double kLdsQueue = 16;      // cycles an LDS instruction may wait in its queue
constexpr double kMemoryQueue = 64;   // cycles a memory instruction may wait in its queue
constexpr u32 kMaxRows = 1024;        // vector and accumulation registers

u64 length_of(const ModelInput& input, const std::vector<u32>& trace) {
  u64 total = 0;
  for (u32 block : trace) total += input.blocks[block].last - input.blocks[block].first;
  return total;
}

}  // namespace

void Replayed::add(const Replayed& other, u64 times) {
  const double n = (double)times;
  for (size_t i = 0; i < spent.size(); i++) {
    spent[i] += n * other.spent[i];
    executions[i] += times * other.executions[i];
  }
  for (int i = 0; i < 8; i++) busy[i] += n * other.busy[i];
  for (int i = 0; i < kStalls; i++) stalls[i] += n * other.stalls[i];
  cycles += n * other.cycles;
  instructions += times * other.instructions;
}

void Replay::start(const std::vector<size_t>& workgroups, u64 budget) {
  waiting_.resize(workgroups.size());
  found_.workgroups.resize(workgroups.size());
  u64 total = 0;
  for (u32 c = 0; c < workgroups.size(); c++) {
    const Sample& sample = samples_[workgroups[c]];
    const u32 count = (u32)sample.events.size();
    alive_.push_back(count);
    found_.workgroups[c].cycles.assign(input_.blocks.size(), 0);
    found_.workgroups[c].executions.assign(input_.blocks.size(), 0);
    found_.workgroups[c].slowest.assign(input_.blocks.size(), 0);
    for (u32 w = 0; w < count; w++) {
      ReplayWave wave;
      wave.workgroup = c;
      wave.time = c * request_.workgroup_launch;
      wave.simd = (int)(waves_.size() % kSimds);
      wave.trace = &sample.recorder->traces[w].blocks;
      wave.events = &sample.events[w];
      wave.matrix_ready.assign(kMaxRows, 0);
      wave.block_cycles.assign(input_.blocks.size(), 0);
      wave.block_executions.assign(input_.blocks.size(), 0);
      total += length_of(input_, *wave.trace);
      queue_.push({wave.time, (u32)waves_.size()});
      waves_.push_back(std::move(wave));
    }
  }
  if (total > budget) shorten((double)budget / (double)total);
}

// Leaves out parts of each wave. Blocks still get a cost from the executions that are left.
void Replay::shorten(double share) {
  std::vector<u32> barriers;
  for (const BlockRange& block : input_.blocks) {
    barriers.push_back((u32)std::count_if(
        input_.instructions.begin() + block.first, input_.instructions.begin() + block.last,
        [](const TimedInst& inst) { return inst.unit == Unit::kBarrier; }));
  }
  for (ReplayWave& wave : waves_) wave.gaps = gaps_of(*wave.trace, barriers, share);
}

bool Replay::advance(ReplayWave& wave) {
  while (wave.next == wave.last) {
    if (wave.next_gap < wave.gaps.size() && wave.position == wave.gaps[wave.next_gap].from) {
      wave.position = wave.gaps[wave.next_gap++].to;
    }
    if (wave.position == wave.trace->size()) return false;
    wave.block = (*wave.trace)[wave.position++];
    const BlockRange& block = input_.blocks[wave.block];
    wave.block_executions[wave.block]++;
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
  const double taken = std::max(inst.cycles, inst.gap);
  charge(Stall::kIssue, taken);
  wave.time = begin + taken;
}

// A matrix instruction issues through the port of the vector unit. Then it runs while other
// instructions issue.
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

// What the current execution of a memory instruction costs. One without an event had no active
// lanes, or is a permutation.
AccessTime Replay::time_of(ReplayWave& wave, u32 index) const {
  const std::vector<TimedEvent>& events = *wave.events;
  size_t& next = wave.next_event;
  while (next < events.size() && events[next].position < wave.position) next++;
  if (next < events.size() && events[next].position == wave.position &&
      events[next].instruction == index) {
    return events[next++].time;
  }
  const TimedInst& inst = input_.instructions[index];
  const bool loads = inst.unit == Unit::kMemory && !inst.is_store;
  return {std::max<double>(1, inst.cycles), loads ? request_.l1_latency : 0};
}

// A compute unit waits for a limited number of lines. They come back in order, so that their places
// are free in the order in which they were taken. A line without a place stops those behind it.
double Replay::miss(double from, const AccessTime& time) {
  for (u32 i = 0; i < time.lines; i++) {
    double& place = misses_[next_miss_++ % misses_.size()];
    from = std::max(from, place);
    place = from + time.held;
  }
  return from;
}

void Replay::memory(ReplayWave& wave, const TimedInst& inst, u32 index) {
  const AccessTime time = time_of(wave, index);
  const bool local = inst.unit == Unit::kLds;
  double& free_at = local ? lds_free_ : memory_free_;
  const double begin = use(free_at, wave.time, time.cycles, inst.unit);
  const double issued = std::max(wave.time, begin - (local ? kLdsQueue : kMemoryQueue));
  charge(local ? Stall::kLdsQueue : Stall::kMemoryQueue, issued - wave.time);
  charge(Stall::kIssue, kIssue);
  if (local) {
    wave.local.push_back({begin + time.cycles + request_.lds_latency, Stall::kLds});
  } else {
    const double last = miss(begin, time);
    memory_free_ = std::max(memory_free_, last);
    wave.memory.push_back({std::max(begin + time.cycles, last) + time.latency, Stall::kMemory});
  }
  wave.time = issued + kIssue;
}

// Lines that the scalar cache lacks come through the unit of the other loads.
void Replay::scalar_memory(ReplayWave& wave, u32 index) {
  const AccessTime time = time_of(wave, index);
  const bool late = time.latency > request_.scalar_latency;
  double begin = wave.time;
  if (late) begin = use(memory_free_, begin, time.cycles, Unit::kMemory) + time.cycles;
  const double latency = std::max(request_.scalar_latency, time.latency);
  wave.local.push_back({begin + latency, late ? Stall::kMemory : Stall::kScalarMemory});
  charge(Stall::kIssue, kIssue);
  wave.time += kIssue;
}

void Replay::wait(ReplayWave& wave, const TimedInst& inst) {
  // Operations complete in order: waiting for all but the last `limit`.
  const auto drain = [&](std::vector<Pending>& pending, size_t& head, u16 limit) {
    while (pending.size() - head > limit) {
      const Pending& next = pending[head++];
      if (next.done <= wave.time) continue;
      charge(next.kind, next.done - wave.time);
      if (next.kind == Stall::kMemory) wave.memory_wait += next.done - wave.time;
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

// Resumes the waves of a workgroup when all running waves have reached the barrier. `now`: when the
// last one did, or ended.
void Replay::release(u32 workgroup, double now) {
  std::vector<u32>& waiting = waiting_[workgroup];
  if (waiting.empty() || waiting.size() < alive_[workgroup]) return;
  double last = now;
  for (u32 i : waiting) last = std::max(last, waves_[i].time);
  for (u32 i : waiting) {
    ReplayWave& wave = waves_[i];
    const double waited = last + kBarrierCycles - wave.time;
    charge(Stall::kBarrier, waited);
    found_.spent[wave.next - 1] += waited;
    wave.block_cycles[wave.block] += waited;
    wave.time = last + kBarrierCycles;
    queue_.push({wave.time, i});
  }
  waiting.clear();
}

void Replay::finish(const ReplayWave& wave) {
  ReplayedWorkgroup& workgroup = found_.workgroups[wave.workgroup];
  const double begin = wave.workgroup * request_.workgroup_launch;
  workgroup.length = std::max(workgroup.length, wave.time - begin);
  workgroup.memory_wait = std::max(workgroup.memory_wait, wave.memory_wait);
  for (size_t b = 0; b < input_.blocks.size(); b++) {
    const u64 executions = wave.block_executions[b];
    if (!executions) continue;
    workgroup.cycles[b] += wave.block_cycles[b];
    workgroup.executions[b] += executions;
    const double each = wave.block_cycles[b] / (double)executions;
    workgroup.slowest[b] = std::max(workgroup.slowest[b], each);
  }
  found_.cycles = std::max(found_.cycles, wave.time);
  alive_[wave.workgroup]--;
  release(wave.workgroup, wave.time);
}

bool Replay::step(ReplayWave& wave, u32 number) {
  const u32 index = wave.next++;
  const TimedInst& inst = input_.instructions[index];
  const double before = wave.time;
  found_.instructions++;
  found_.executions[index]++;
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
      scalar_memory(wave, index);
      break;
    case Unit::kWait:
      wait(wave, inst);
      break;
    case Unit::kBarrier:
      waiting_[wave.workgroup].push_back(number);
      release(wave.workgroup, wave.time);
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
  found_.spent[index] += wave.time - before;
  wave.block_cycles[wave.block] += wave.time - before;
  return true;
}

// Whether the next instruction of a wave uses a unit that waves share. Only then the order of waves
// matters. Other instructions run at once.
bool Replay::waits_for_turn(const ReplayWave& wave) const {
  switch (input_.instructions[wave.next].unit) {
    case Unit::kLds:
    case Unit::kMemory:
    case Unit::kScalarMemory:
      return true;
    case Unit::kVector:
    case Unit::kMatrix:
    case Unit::kScalar:
      return waves_.size() > kSimds;
    default:
      return false;
  }
}

const Replayed& Replay::run(const std::vector<size_t>& workgroups, u64 budget) {
  start(workgroups, budget);
  while (!queue_.empty()) {
    const u32 number = queue_.top().second;
    queue_.pop();
    ReplayWave& wave = waves_[number];
    for (;;) {
      if (!advance(wave)) {
        finish(wave);
        break;
      }
      const Entry entry(wave.time, number);
      if (waits_for_turn(wave) && !queue_.empty() && entry > queue_.top()) {
        queue_.push(entry);
        break;
      }
      if (!step(wave, number)) break;
    }
  }
  return found_;
}
