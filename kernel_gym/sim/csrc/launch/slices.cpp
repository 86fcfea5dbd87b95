// Runs the waves of a workgroup in turn, in slices that end at barriers or after a number of
 // instructions.
#include <algorithm>

#include "launch/launch.h"

namespace {

constexpr i64 kWaveSlice = 32768;  // instructions until a wave is pre-empted
constexpr u32 kPollsOfSpin = 64;  // a slice with this many polling operations counts as waiting
constexpr u32 kSlicesOfWorkgroup = 64;  // slices until the next workgroup runs
constexpr u32 kRoundsOfSlice = 256;  // runs from barrier to barrier that count as a slice

}  // namespace

// ---- block heads. imm: block number, aux: instructions in it, dst: their nominal cycles
const Inst* block_head(Wave& wave, const Inst* inst) {
  wave.block_counts[inst->imm]++;
  wave.progress += inst->dst;
  wave.budget -= inst->aux;
  if (UNLIKELY(wave.recorder != nullptr)) wave.recorder->block(wave.number, inst->imm);
  if (LIKELY(wave.budget >= 0)) return inst + 1;
  wave.resume = inst + 1;
  wave.status = Status::kPreempted;
  return nullptr;
}
REGISTER(block_head, block_head);

// The barrier of a cooperative launch.
static const Inst* ds_gws_barrier(Wave& wave, const Inst* inst) {
  wave.resume = inst + 1;
  wave.status = Status::kGridBarrier;
  return nullptr;
}
REGISTER(ds_gws_barrier, ds_gws_barrier);

// The limit that is exceeded, after counting what the workgroup has executed.
FaultKind Launch::exceeded(Worker& worker, Slot& slot) {
  const u64 more = slot.executed - slot.accounted;
  slot.accounted = slot.executed;
  worker.executed += more;
  if (request_.instruction_limit && (executed_ += more) > request_.instruction_limit) {
    return FaultKind::kInstructionLimit;
  }
  return Clock::now() > deadline_ ? FaultKind::kTimeLimit : FaultKind::kNone;
}

// Ends the launch because of a limit. The fault names a wave that is still running, if any.
void Launch::stop_at_limit(Slot& slot, FaultKind kind) {
  Wave* stopped = &slot.waves[0];
  for (Wave& wave : slot.waves) {
    if (wave.status != Status::kEnded) {
      stopped = &wave;
      break;
    }
  }
  raise_fault(*stopped, stopped->resume, kind, 0, 0, 0);
  fail(slot, *stopped);
  stop_before_ = 0;
}

void Launch::fail(Slot& slot, Wave& wave) {
  const std::lock_guard<std::mutex> lock(fault_mutex_);
  if (slot.workgroup < fault_workgroup_) {
    fault_workgroup_ = slot.workgroup;
    fault_ = wave.fault;
    stop_before_ = std::min<u64>(stop_before_.load(), slot.workgroup);
  }
}

// Runs a wave with an audit of every source instruction.
static void run_audited(Wave& wave) {
  for (const Inst* inst = wave.resume; inst;) {
    if (inst->handler == block_head) {
      wave.audit->block(wave, inst);
      inst = inst->handler(wave, inst);
      continue;
    }
    if (!wave.audit->before(wave, inst)) return;
    const Inst* next = inst->handler(wave, inst);
    if (!wave.audit->after(wave, inst)) return;
    inst = next;
  }
}

// Runs a wave in which some loads get another value.
static void run_poisoned(Wave& wave, const Poison& poison, u32 fill) {
  const Inst* inst = wave.resume;
  while (inst) {
    const bool meant = inst->index == poison.instruction && inst->handler != block_head;
    const u64 exec = wave.exec();
    inst = inst->handler(wave, inst);
    if (!meant) continue;
    const Registers& target = poison.target;
    for (u32 row = target.first; row < (u32)target.first + target.count; row++) {
      for (int c = 0; c < kChunks; c++) store(exec, wave.regs + row * kLanes, c, splat(fill));
    }
  }
}

// Runs the waves of a workgroup in turn until it ends, waits for others or its share is over.
SliceEnd Launch::run_slice(Worker& worker, Slot& slot) {
  u32 rounds = 0, polls = 0;  // a loop with a barrier in it preempts no wave
  for (;;) {
    bool advanced = false;  // some wave did useful work
    bool preempted = false;
    u32 ended = 0, waiting = 0, grid_waiting = 0;
    for (u32 i = 0; i < waves_; i++) {
      Wave& wave = slot.waves[request_.reverse_waves ? waves_ - 1 - i : i];
      if (wave.status == Status::kPreempted) wave.status = Status::kRunning;
      if (wave.status == Status::kRunning) {
        wave.clock += kWaveSlice - wave.budget;
        wave.budget = kWaveSlice;
        wave.sync_operations = 0;
        if (UNLIKELY(wave.audit != nullptr)) {
          run_audited(wave);
        } else if (UNLIKELY(slot.poisoned >> wave.number & 1)) {
          run_poisoned(wave, *(const Poison*)request_.poison, request_.fill);
        } else {
          for (const Inst* inst = wave.resume; inst;) inst = inst->handler(wave, inst);
        }
        slot.executed += kWaveSlice - wave.budget;
        if (wave.status == Status::kFaulted) {
          fail(slot, wave);
          return SliceEnd::kFaulted;
        }
        const bool stopped_early = wave.status != Status::kPreempted;
        preempted |= !stopped_early;
        polls += wave.sync_operations;
        advanced |= stopped_early || wave.sync_operations < kPollsOfSpin;
      }
      ended += wave.status == Status::kEnded;
      waiting += wave.status == Status::kBarrier;
      grid_waiting += wave.status == Status::kGridBarrier;
    }
    if (grid_waiting && ended + waiting + grid_waiting == waves_) return SliceEnd::kYielded;
    if (ended == waves_) return SliceEnd::kFinished;
    if (ended + waiting == waves_) {
      for (Wave& wave : slot.waves) {
        if (wave.status == Status::kBarrier) wave.status = Status::kRunning;
      }
      if (slot.audit) slot.audit->barrier(slot.waves);
    }
    if (!preempted && ++rounds % kRoundsOfSlice != 0) continue;
    const FaultKind limit = exceeded(worker, slot);
    if (limit != FaultKind::kNone) {
      stop_at_limit(slot, limit);
      return SliceEnd::kFaulted;
    }
    if (!preempted && polls >= kPollsOfSpin) return SliceEnd::kYielded;
    polls = 0;
    if (!preempted) continue;
    if (!advanced || ++slot.slices % kSlicesOfWorkgroup == 0) return SliceEnd::kYielded;
  }
}
