// Workgroups that wait for each other: the grid barrier, and launches that can never end.
#include <algorithm>

#include "launch/launch.h"

// Records for the timing model that all workgroups wait for the last one.
void Launch::share_grid_barrier(Worker& worker) {
  const auto progress_of = [](const Slot& slot) {
    u64 progress = 0;
    for (const Wave& wave : slot.waves) progress = std::max(progress, wave.progress);
    return progress;
  };
  for (const auto& slot : worker.resident) {
    engine_.sharing->arrive((u32)slot->workgroup, progress_of(*slot));
  }
  for (const auto& slot : worker.resident) {
    engine_.sharing->depart((u32)slot->workgroup, progress_of(*slot));
  }
}

// Resumes all waves if every wave of the launch has arrived at the grid barrier.
void Launch::release_grid(Worker& worker) {
  u64 waiting = 0;
  for (const auto& slot : worker.resident) {
    for (const Wave& wave : slot->waves) {
      if (wave.status == Status::kGridBarrier) {
        waiting++;
      } else if (wave.status != Status::kEnded && wave.status != Status::kBarrier) {
        return;
      }
    }
  }
  if (!waiting) return;
  if (engine_.sharing) share_grid_barrier(worker);
  for (const auto& slot : worker.resident) {
    for (Wave& wave : slot->waves) {
      if (wave.status == Status::kGridBarrier) wave.status = Status::kRunning;
    }
    if (slot->audit) slot->audit->grid_barrier(slot->waves);
  }
  if (engine_.audit) engine_.audit->tick++;
}

static u64 mix(u64 hash, const void* data, size_t bytes) {
  const u8* p = (const u8*)data;
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    u64 word;
    memcpy(&word, p + i, 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

// Whether the launch can never end. The engine is deterministic: if the state of every wave and
// all memory repeat, they repeat forever (Brent's algorithm finds the cycle).
bool Launch::stuck(const Worker& worker, bool more) {
  if (workers_.size() > 1) return false;
  const bool all_have_run = ++turns_ % worker.resident.size() == 0;
  if (more || !all_have_run) return false;
  u64 state = 0;
  for (const auto& slot : worker.resident) {
    for (const Wave& wave : slot->waves) {
      state = mix(state, &wave.resume, sizeof wave.resume) + (u64)wave.status;
      state = mix(state, wave.regs, (size_t)program_.rows * sizeof(Row));
      state = mix(state, wave.scalars, (size_t)scalar_stride_ * sizeof(u32));
    }
    state = mix(state, slot->lds, request_.lds_size);
    state = mix(state, slot->scratch.data(), slot->scratch.size());
  }
  const bool keep = turns_ >= next_keep_;
  if (!keep && state != kept_state_) return false;
  u64 memory = 0;
  for (u64 i = 0; i < memory_.count; i++) {
    const Region& region = memory_.allocations[i];
    memory = mix(memory, (const void*)region.start, region.end - region.start);
  }
  if (state == kept_state_ && memory == kept_memory_) return true;
  kept_state_ = state;
  kept_memory_ = memory;
  next_keep_ = 2 * turns_;
  return false;
}

// The fault names a wave in an endless loop and, as the other side, a barrier with waiting waves.
void Launch::stop_at_deadlock(const Worker& worker) {
  Slot& slot =
      **std::min_element(worker.resident.begin(), worker.resident.end(),
                         [](const auto& a, const auto& b) { return a->workgroup < b->workgroup; });
  Wave* running = nullptr;
  Wave* waiting = nullptr;
  u32 at_barrier = 0;
  for (Wave& wave : slot.waves) {
    if (wave.status == Status::kPreempted && !running) running = &wave;
    if (wave.status == Status::kBarrier && !waiting) waiting = &wave;
    at_barrier += wave.status == Status::kBarrier;
  }
  Wave& named = running ? *running : slot.waves[0];
  const u64 not_started = workgroups_ - next_.load() + worker.end - worker.next;
  const Inst* place = named.resume;  // the branch of the loop is the most useful place
  const Inst* end = named.program + named.program_size - 1;
  while (place < end && place[1].handler != block_head) place++;
  raise_fault(named, place, FaultKind::kDeadlock, 0, not_started, at_barrier);
  if (waiting) named.fault.other_instruction = waiting->resume[-1].index;
  fail(slot, named);
  stop_before_ = 0;
}
