// The audit of global memory: which waves have touched each word in this launch.
#pragma once

#include "audit/audit_state.h"

class GlobalAudit {
 public:
  explicit GlobalAudit(AuditState& state) : state_(state) {}

  // Before a load that is within bounds; false after a fault.
  bool read(Wave& wave, const Inst* inst, const u64* addresses, const Runs& runs, u64 lanes,
            u32 size);
  // After a write: what it has changed, and whether another lane has undone it.
  bool wrote(Wave& wave, const Inst* inst, const Write& write);

 private:
  bool lost(Wave& wave, const Inst* inst, const Write& write);
  bool read_span(Wave& wave, const Inst* inst, const Span& span, Mark made);
  bool read_word(Wave& wave, const Inst* inst, const Span& span, u64 address, Mark made);
  bool wrote_span(Wave& wave, const Inst* inst, const Span& span, const u8* old, Mark made);
  bool wrote_lane(Wave& wave, const Inst* inst, const Span& lane, const u8* old, Mark made);
  bool wrote_word(Wave& wave, const Inst* inst, const Span& span, u64 address, Mark made,
                  u32 changed);
  bool ordered(const Wave& wave, Mark mark) const;
  Mark mark(const Wave& wave, const Inst* inst, u8 flags);
  bool race(Wave& wave, const Inst* inst, u32 lane, u64 address, Mark other, bool reading);

  AuditState& state_;
};
