#include "audit/audit.h"

#include <algorithm>

#include "audit/copy_access.h"

std::unique_ptr<Audit> AuditPool::start(AuditLaunch& launch, u64 workgroup, u32 waves,
                                        u32 lds_size) {
  if (spare_.empty()) spare_.emplace_back(new Audit);
  std::unique_ptr<Audit> audit = std::move(spare_.back());
  spare_.pop_back();
  audit->begin_workgroup(launch, workgroup, waves, lds_size);
  return audit;
}

void Audit::begin_workgroup(AuditLaunch& launch, u64 workgroup, u32 waves, u32 lds_size) {
  state_.launch = &launch;
  state_.table = launch.table.data();
  state_.workgroup = workgroup;
  state_.first_epoch = ++state_.epoch;
  state_.late = false;
  write_count_ = 0;
  state_.waves.resize(waves);
  for (WaveState& state : state_.waves) {
    WaveState fresh;
    std::swap(fresh.defined, state.defined);  // storage to use again
    std::swap(fresh.pending, state.pending);
    std::swap(fresh.vector, state.vector);
    std::swap(fresh.local, state.local);
    fresh.defined.assign(launch.rows, 0);
    fresh.defined[0] = kAllLanes;  // the thread's number
    fresh.pending.assign(launch.rows + kScalarConstants + sizeof(u64), 0);
    fresh.vector.clear();
    fresh.local.clear();
    state = std::move(fresh);
  }
  lds_.begin_workgroup(lds_size);
}

void Audit::barrier(const std::vector<Wave>& waves) {
  state_.epoch++;
  u32 acquired = 0;
  for (const WaveState& state : state_.waves) acquired = std::max(acquired, state.acquired);
  state_.late = false;
  for (WaveState& state : state_.waves) {
    state.acquired = acquired;
    state.acquired_in_epoch = false;
    state.landed[0] = state.issued[0] - (u32)state.local.size();
    state.landed[1] = state.issued[1] - (u32)state.vector.size();
    for (int i = 0; i < 2; i++) state_.late |= state.last_write[i] > state.landed[i];
  }
  lds_.barrier(waves);
}

void Audit::grid_barrier(const std::vector<Wave>& waves) {
  barrier(waves);
  const u32 tick = state_.launch->tick + 1;
  for (u32 wave = 0; wave < state_.waves.size(); wave++) {
    WaveState& state = state_.waves[wave];
    state_.launch->releases[state_.workgroup].add(tick, wave, state_.epoch, state.issued[1]);
    state.acquired = tick;
  }
}

// ---- instructions in order. The table also has those without an operation: waits, fences.
void Audit::block(Wave& wave, const Inst* head) {
  WaveState& state = state_.waves[wave.number];
  if (state.last && state.last + 1 == head) {
    while (state.cursor < head->index) step(wave, state, state.cursor++, head);
  }
  state.cursor = head->index;
  state.last = head;
}

bool Audit::catch_up(Wave& wave, WaveState& state, const Inst* inst) {
  const u32 end = std::min<u32>(inst->index + 1, (u32)state_.launch->table.size());
  while (state.cursor < end) {
    if (!step(wave, state, state.cursor++, inst)) return false;
  }
  return true;
}

bool Audit::look(Wave& wave, const Inst* inst) {
  bool good = wave.status != Status::kFaulted;
  for (u32 i = 0; good && i < write_count_; i++) {
    const Write& write = writes_[i];
    good = write.local ? lds_.wrote(wave, inst, write) : global_.wrote(wave, inst, write);
  }
  write_count_ = 0;
  return good;
}

bool Audit::step(Wave& wave, WaveState& state, u32 index, const Inst* inst) {
  const AuditInst& info = state_.table[index];
  if (info.quiet() && !state.under_way()) return true;
  if (info.kind & kWaits) registers_.wait(state, info);
  if (info.kind & kReleases) {
    // An atomic may overtake what its wave has not waited for. A fence waits.
    const u32 done = state.issued[1] - (info.kind & kAtomicAccess ? (u32)state.vector.size() : 0);
    state_.launch->releases[state_.workgroup].add(++state_.launch->tick, wave.number, state_.epoch,
                                                  done);
  }
  if (info.kind & kAcquires) {
    state.acquired = state_.launch->tick;
    state.acquired_in_epoch = true;
  }
  u32 load = 0;
  if (state.under_way() && registers_.uses_too_early(state, info, load)) {
    raise_fault(wave, inst, FaultKind::kMissingWaitcnt, 0, 0, 0);
    wave.fault.instruction = index;
    wave.fault.other_instruction = load;
    return false;
  }
  if (info.exposed | info.defines) registers_.note(wave, state, info, index);
  if (info.kind & kCounters) registers_.start_load(state, info, index);
  return true;
}

// ---- accesses
bool Audit::global(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size) {
  const u16 kind = state_.table[inst->index].kind;
  if (!lanes) return true;
  const Runs runs = runs_of(addresses, lanes, size);
  if (!(kind & kWritesMemory) || copies(kind)) {
    return atomic_only(kind) || global_.read(wave, inst, addresses, runs, lanes, size);
  }
  Write& write = remember(runs, lanes, size, false);
  u64 end = 0;
  for (u64 rest = runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest);
    write.addresses[l] = addresses[l];
    write.ascending &= addresses[l] >= end;
    end = addresses[l] + runs.length(l) * size;
  }
  if (!write.ascending) memcpy(write.addresses, addresses, sizeof write.addresses);
  keep_old(write);
  return true;
}

bool Audit::lds(Wave& wave, const Inst* inst, const u32* addresses, u64 lanes, u32 size) {
  if (!lanes) return true;
  const AuditInst& info = state_.table[inst->index];
  PaddedRow row;
  u32* places = row.words;
  u64 misaligned = 0;
  const U low = splat(info.alignment ? info.alignment - 1u : 0u);
  for (int c = 0; c < kChunks; c++) {
    const U place = load(addresses, c);
    put(places, c, place);
    misaligned |= to_bits((I)((place & low) != 0u), c);
  }
  if (UNLIKELY(misaligned & lanes)) {
    const u32 l = __builtin_ctzll(misaligned & lanes);
    raise_fault(wave, inst, FaultKind::kMisaligned, l, places[l], size);
    return false;
  }
  const Runs runs = runs_of(row, lanes, size);
  const bool reads = !(info.kind & kWritesMemory) || atomic_only(info.kind);
  if (reads && !lds_.read(wave, inst, places, runs, lanes, size)) return false;
  if (!(info.kind & kWritesMemory)) return true;
  Write& write = remember(runs, lanes, size, true);
  for (u64 rest = runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest);
    write.addresses[l] = (u64)wave.lds + places[l];
  }
  keep_old(write);
  return true;
}

Write& Audit::remember(const Runs& runs, u64 lanes, u32 size, bool local) {
  Write& write = writes_[write_count_++];
  write.lanes = lanes;
  write.runs = runs;
  write.size = size;
  write.source = 1 + write_count_;
  write.local = local;
  write.ascending = true;
  return write;
}

// Copies the bytes that a write will replace.
void Audit::keep_old(Write& write) {
  u8* old = write.old;
  for (u64 rest = write.runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), length = write.runs.length(l);
    copy_access(old, (const void*)write.addresses[l], length * write.size);
    old += length * write.size;
  }
}
