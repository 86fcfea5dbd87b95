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
  const auto& ticks = releases[event.workgroup];
  const auto first = std::upper_bound(ticks.begin(), ticks.end(), event.tick);
  return first != ticks.end() && *first <= acquired;
}
