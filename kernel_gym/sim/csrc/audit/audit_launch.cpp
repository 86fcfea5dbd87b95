#include "audit/audit_launch.h"

#include <algorithm>

namespace {

constexpr size_t kEventsToKeep = 1 << 20;

}  // namespace

AuditLaunch::AuditLaunch(const std::vector<AuditInst>& table, u64 workgroups, u32 rows,
                         AuditLaunch* last)
    : table(table), rows(rows), releases(workgroups), row_suspects(rows, 0) {
  for (const AuditInst& info : table) compares |= (info.kind & kCompares) != 0;
  if (!last) return;
  if (last->events.capacity() <= kEventsToKeep) {
    events = std::move(last->events);
    events.resize(1);
  }
  shadow.reuse(last->shadow);
}

// Whether the workgroup of an event has released what it did, before tick `acquired`.
bool AuditLaunch::released(const Event& event, u32 acquired) const {
  return releases[event.workgroup].after(event) <= acquired;
}

void Releases::add(u32 tick, u32 wave, u32 epoch, u32 landed) {
  if (epochs_.empty() || epochs_.back().epoch != epoch) epochs_.push_back({epoch, tick});
  if (waves_.size() <= wave) waves_.resize(wave + 1);
  std::vector<OfWave>& own = waves_[wave];
  if (!own.empty()) landed = std::max(landed, own.back().landed);
  own.push_back({tick, landed});
}

// A release covers what its own wave has done, and what other waves did before a barrier that both
// have passed.
u32 Releases::after(const Event& event) const {
  u32 found = ~0u;
  const auto epoch = std::partition_point(epochs_.begin(), epochs_.end(),
                                          [&](const OfEpoch& r) { return r.epoch <= event.epoch; });
  if (epoch != epochs_.end()) found = epoch->tick;
  if (event.wave >= waves_.size()) return found;
  const std::vector<OfWave>& own = waves_[event.wave];
  const auto release = std::partition_point(own.begin(), own.end(), [&](const OfWave& r) {
    return r.tick <= event.tick || r.landed < event.sequence;
  });
  return release == own.end() ? found : std::min(found, release->tick);
}
