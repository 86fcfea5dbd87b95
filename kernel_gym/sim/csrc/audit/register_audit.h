// The audit of registers: used before their load has arrived, or read before they are written.
#pragma once

#include "audit/audit_state.h"

class RegisterAudit {
 public:
  explicit RegisterAudit(AuditState& state) : state_(state) {}

  // Whether an instruction uses the target of a load under way; `load` becomes that load.
  bool uses_too_early(const WaveState& wave, const AuditInst& info, u32& load) const;
  // Lets loads arrive, at a wait.
  void wait(WaveState& wave, const AuditInst& info);
  void start_load(WaveState& wave, const AuditInst& info, u32 index);
  // Rows that are read before they are written become suspects, once each.
  void note(Wave& wave, WaveState& state, const AuditInst& info, u32 index);

 private:
  void land(WaveState& wave, const Flight& flight);
  bool in_flight(const WaveState& wave, const Registers& range, u16 ignored,
                 u32& instruction) const;

  AuditState& state_;
};
