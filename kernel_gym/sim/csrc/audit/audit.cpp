#include "audit/audit.h"

#include <algorithm>

namespace {

constexpr u16 kCounters = kVectorCounter | kLocalCounter | kScalarCounter;
constexpr u32 kScalars = kScalarConstants;
constexpr size_t kEventsToKeep = 1 << 20;
constexpr u16 kMostVector = 63, kMostLocal = 15;

}  // namespace

// ---- the launch
AuditLaunch::AuditLaunch(const std::vector<AuditInst>& table, u64 workgroups, u32 rows,
                         AuditLaunch* last)
    : table(table), rows(rows), releases(workgroups), row_suspects(rows, 0) {
  for (const AuditInst& info : table) compares |= (info.kind & kCompares) != 0;
  if (!last) return;
  if (last->events.capacity() <= kEventsToKeep) {
    events = std::move(last->events);
    events.resize(1);
  }
  spare_ = std::move(last->spare_);
  shadow.reuse(last->shadow);
}

AuditLaunch::~AuditLaunch() = default;

std::unique_ptr<Audit> AuditLaunch::start(u64 workgroup, u32 waves, u32 lds_size) {
  if (spare_.empty()) spare_.emplace_back(new Audit);
  std::unique_ptr<Audit> audit = std::move(spare_.back());
  spare_.pop_back();
  audit->begin(*this, workgroup, waves, lds_size);
  return audit;
}

void AuditLaunch::end(std::unique_ptr<Audit> audit) { spare_.push_back(std::move(audit)); }

// Whether the workgroup of an event has released what it did, before tick `acquired`.
bool AuditLaunch::released(const Event& event, u32 acquired) const {
  const auto& ticks = releases[event.workgroup];
  const auto first = std::upper_bound(ticks.begin(), ticks.end(), event.tick);
  return first != ticks.end() && *first <= acquired;
}

// ---- a workgroup
void Audit::begin(AuditLaunch& launch, u64 workgroup, u32 waves, u32 lds_size) {
  launch_ = &launch;
  table_ = launch.table.data();
  workgroup_ = workgroup;
  first_epoch_ = ++epoch_;
  late_ = false;
  write_count_ = 0;
  waves_.resize(waves);
  for (WaveState& state : waves_) {
    WaveState fresh;
    std::swap(fresh.defined, state.defined);  // storage to use again
    std::swap(fresh.pending, state.pending);
    std::swap(fresh.vector, state.vector);
    std::swap(fresh.local, state.local);
    fresh.defined.assign(launch.rows, 0);
    fresh.defined[0] = kAllLanes;  // the thread's number
    fresh.pending.assign(launch.rows + kScalars + sizeof(u64), 0);
    fresh.vector.clear();
    fresh.local.clear();
    state = std::move(fresh);
  }
  begin_lds(lds_size);
}

void Audit::barrier() {
  epoch_++;
  u32 acquired = 0;
  for (const WaveState& state : waves_) acquired = std::max(acquired, state.acquired);
  late_ = false;
  for (WaveState& state : waves_) {
    state.acquired = acquired;
    state.acquired_in_epoch = false;
    state.landed[0] = state.issued[0] - (u32)state.local.size();
    state.landed[1] = state.issued[1] - (u32)state.vector.size();
    for (int i = 0; i < 2; i++) late_ |= state.last_write[i] > state.landed[i];
  }
}

void Audit::grid_barrier() {
  barrier();
  launch_->releases[workgroup_].push_back(launch_->tick + 1);
  for (WaveState& state : waves_) state.acquired = launch_->tick + 1;
}

// ---- instructions in order. Those without an operation (waits, fences) are only in the table.
void Audit::block(Wave& wave, const Inst* head) {
  WaveState& state = waves_[wave.number];
  if (state.last && state.last + 1 == head) {
    while (state.cursor < head->index) step(wave, state, state.cursor++, head);
  }
  state.cursor = head->index;
  state.last = head;
}

bool Audit::catch_up(Wave& wave, WaveState& state, const Inst* inst) {
  const u32 end = std::min<u32>(inst->index + 1, (u32)launch_->table.size());
  while (state.cursor < end) {
    if (!step(wave, state, state.cursor++, inst)) return false;
  }
  return true;
}

bool Audit::look(Wave& wave, const Inst* inst) {
  bool good = wave.status != Status::kFaulted;
  for (u32 i = 0; i < write_count_; i++) good = good && finish(wave, inst, writes_[i]);
  write_count_ = 0;
  return good;
}

bool Audit::step(Wave& wave, WaveState& state, u32 index, const Inst* inst) {
  const AuditInst& info = launch_->table[index];
  if (info.quiet() && !state.under_way()) return true;
  if (info.kind & kWaits) wait(state, info);
  if (info.kind & kReleases) launch_->releases[workgroup_].push_back(++launch_->tick);
  if (info.kind & kAcquires) {
    state.acquired = launch_->tick;
    state.acquired_in_epoch = true;
  }
  u32 load = 0;
  if (state.under_way() && uses_too_early(state, info, load)) {
    raise_fault(wave, inst, FaultKind::kMissingWaitcnt, 0, 0, 0);
    wave.fault.instruction = index;
    wave.fault.other_instruction = load;
    return false;
  }
  if (info.exposed | info.defines) note_registers(wave, state, info, index);
  if (info.kind & kCounters) start_load(state, info, index);
  return true;
}

bool Audit::uses_too_early(const WaveState& state, const AuditInst& info, u32& load) {
  for (const Registers& range : info.reads) {
    if (!range.count) break;  // those in use come first
    if (in_flight(state, range, 0, load)) return true;
  }
  // Results of one kind arrive in order, so that a later load may overwrite an earlier one.
  for (const Registers& range : info.writes) {
    if (!range.count) break;
    if (in_flight(state, range, info.kind & kCounters, load)) return true;
  }
  return false;
}

void Audit::wait(WaveState& state, const AuditInst& info) {
  while (state.vector.size() > info.vector_limit) {
    land(state, state.vector.front());
    state.vector.erase(state.vector.begin());
  }
  const bool unordered = std::any_of(state.local.begin(), state.local.end(), [](const Flight& f) {
    return f.counter == kScalarCounter;
  });
  if (unordered && info.local_limit) return;  // any of them may be the one that is missing
  while (state.local.size() > info.local_limit) {
    land(state, state.local.front());
    state.local.erase(state.local.begin());
  }
}

void Audit::land(WaveState& state, const Flight& flight) {
  const u32 base = flight.target.count & kScalarRange ? launch_->rows : 0;
  for (u32 i = 0; i < (flight.target.count & ~kScalarRange); i++) {
    state.pending[base + flight.target.first + i]--;
  }
}

// Whether a register of the range is the target of a load under way (of another kind than
// `ignored`); `instruction` becomes that load.
bool Audit::in_flight(const WaveState& state, const Registers& range, u16 ignored,
                      u32& instruction) {
  const u32 count = range.count & ~kScalarRange;
  const u32 base = range.count & kScalarRange ? launch_->rows : 0;
  u64 pending = 0;
  for (u32 i = 0; i < count; i += 8) {
    u64 next;
    memcpy(&next, state.pending.data() + base + range.first + i, 8);
    pending |= count - i < 8 ? next & ((1ull << 8 * (count - i)) - 1) : next;
  }
  if (LIKELY(!pending)) return false;
  for (const auto* queue : {&state.vector, &state.local}) {
    for (const Flight& flight : *queue) {
      const u32 other = flight.target.count & ~kScalarRange;
      const bool same_file = !((flight.target.count ^ range.count) & kScalarRange);
      if (!same_file || flight.counter & ignored) continue;
      if (flight.target.first < range.first + count && range.first < flight.target.first + other) {
        instruction = flight.instruction;
        return true;
      }
    }
  }
  return false;
}

void Audit::start_load(WaveState& state, const AuditInst& info, u32 index) {
  const Registers& target = info.writes[0];
  const u32 base = target.count & kScalarRange ? launch_->rows : 0;
  const auto start = [&](std::vector<Flight>& queue, u16 counter) {
    queue.push_back({target, index, counter});
    for (u32 i = 0; i < (target.count & ~kScalarRange); i++) {
      state.pending[base + target.first + i]++;
    }
  };
  // The hardware lets no more be under way than its counters can count.
  AuditInst full = {kWaits, 0xffff, 0xffff, 0, 0, 0, {}, {}};
  if (state.vector.size() >= kMostVector) full.vector_limit = kMostVector - 1;
  if (state.local.size() >= kMostLocal) full.local_limit = kMostLocal - 1;
  if ((full.vector_limit & full.local_limit) != 0xffff) wait(state, full);
  state.issued[0] += (info.kind & (kLocalCounter | kScalarCounter)) != 0;
  state.issued[1] += (info.kind & kVectorCounter) != 0;
  if (info.kind & kVectorCounter) start(state.vector, kVectorCounter);
  if (info.kind & kLocalCounter) start(state.local, kLocalCounter);
  if (info.kind & kScalarCounter) start(state.local, kScalarCounter);
}

// Rows that are read before they are written become suspects, once each.
void Audit::note_registers(Wave& wave, WaveState& state, const AuditInst& info, u32 index) {
  const u64 exec = wave.exec();
  for (u32 i = 0; i < info.exposed; i++) {
    const Registers& range = info.reads[i];
    for (u32 row = range.first; row < (u32)range.first + range.count; row++) {
      const u64 missing = exec & ~state.defined[row];
      if (LIKELY(!missing) || launch_->row_suspects[row]) continue;
      launch_->row_suspects[row] = 1;
      if (launch_->suspects.size() >= kMostSuspects) continue;
      launch_->suspects.push_back({kRegisterSuspect, index, wave.number,
                                   (u32)__builtin_ctzll(missing), workgroup_, row, nullptr, 0, 0});
    }
  }
  for (u32 i = 0; i < info.defines; i++) {
    const Registers& range = info.writes[i];
    for (u32 row = range.first; row < (u32)range.first + range.count; row++) {
      state.defined[row] |= info.kind & kAllLanesWritten ? kAllLanes : exec;
    }
  }
}
