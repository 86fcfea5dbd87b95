#include "audit/register_audit.h"

#include <algorithm>

namespace {

constexpr u16 kMostVector = 63, kMostLocal = 15;  // what the counters can count

}  // namespace

bool RegisterAudit::uses_too_early(const WaveState& state, const AuditInst& info, u32& load) const {
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

void RegisterAudit::wait(WaveState& state, const AuditInst& info) {
  while (state.vector.size() > info.vector_limit) {
    land(state, state.vector.front());
    state.vector.erase(state.vector.begin());
  }
  const bool unordered = std::any_of(state.local.begin(), state.local.end(),
                                     [](const Flight& f) { return f.counter == kScalarCounter; });
  if (unordered && info.local_limit) return;  // any of them may be the one that is missing
  while (state.local.size() > info.local_limit) {
    land(state, state.local.front());
    state.local.erase(state.local.begin());
  }
}

void RegisterAudit::land(WaveState& state, const Flight& flight) {
  const u32 base = flight.target.count & kScalarRange ? state_.launch->rows : 0;
  for (u32 i = 0; i < (flight.target.count & ~kScalarRange); i++) {
    state.pending[base + flight.target.first + i]--;
  }
}

// Whether a register of the range is the target of a load under way (of another kind than
// `ignored`); `instruction` becomes that load.
bool RegisterAudit::in_flight(const WaveState& state, const Registers& range, u16 ignored,
                              u32& instruction) const {
  const u32 count = range.count & ~kScalarRange;
  const u32 base = range.count & kScalarRange ? state_.launch->rows : 0;
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

void RegisterAudit::start_load(WaveState& state, const AuditInst& info, u32 index) {
  const Registers& target = info.writes[0];
  const u32 base = target.count & kScalarRange ? state_.launch->rows : 0;
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

void RegisterAudit::note(Wave& wave, WaveState& state, const AuditInst& info, u32 index) {
  const u64 exec = wave.exec();
  for (u32 i = 0; i < info.exposed; i++) {
    const Registers& range = info.reads[i];
    for (u32 row = range.first; row < (u32)range.first + range.count; row++) {
      const u64 missing = exec & ~state.defined[row];
      if (LIKELY(!missing) || state_.launch->row_suspects[row]) continue;
      state_.launch->row_suspects[row] = 1;
      if (state_.launch->suspects.size() >= kMostSuspects) continue;
      state_.launch->suspects.push_back({kRegisterSuspect, index, wave.number,
                                         (u32)__builtin_ctzll(missing), state_.workgroup, row,
                                         nullptr, 0, 0});
    }
  }
  for (u32 i = 0; i < info.defines; i++) {
    const Registers& range = info.writes[i];
    for (u32 row = range.first; row < (u32)range.first + range.count; row++) {
      state.defined[row] |= info.kind & kAllLanesWritten ? kAllLanes : exec;
    }
  }
}
