// An audit checks a launch for faults that values need not show: races, lost writes, registers
// used before their load has arrived, and storage read before it is written.
//
// It runs beside the handlers, one source instruction at a time, from a table that the Python side
// makes of the assembler text (kernel_gym/sim/compiler/audit_tables.py). Each kind of storage has a
// part of its own.
#pragma once

#include <memory>
#include <vector>

#include "audit/global_audit.h"
#include "audit/lds_audit.h"
#include "audit/register_audit.h"

// The audit of one resident workgroup.
class Audit {
 public:
  void begin_workgroup(AuditLaunch& launch, u64 workgroup, u32 waves, u32 lds_size);

  // Around the operations of a wave; false after a fault.
  bool before(Wave& wave, const Inst* inst) {
    WaveState& state = state_.waves[wave.number];
    state.last = inst;
    if (state.cursor > inst->index) return true;
    if (LIKELY(state.cursor == inst->index) && state_.table[inst->index].quiet() &&
        !state.under_way()) {
      state.cursor++;
      return true;
    }
    return catch_up(wave, state, inst);
  }
  bool after(Wave& wave, const Inst* inst) { return LIKELY(!write_count_) || look(wave, inst); }
  void block(Wave& wave, const Inst* head);
  void barrier(const std::vector<Wave>& waves);  // all have arrived
  void grid_barrier(const std::vector<Wave>& waves);  // and those of all other workgroups

  // From the handlers, before an access that is within bounds; false after a fault.
  bool global(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size);
  bool lds(Wave& wave, const Inst* inst, const u32* addresses, u64 lanes, u32 size);

 private:
  bool catch_up(Wave& wave, WaveState& state, const Inst* inst);
  bool step(Wave& wave, WaveState& state, u32 index, const Inst* inst);
  bool look(Wave& wave, const Inst* inst);  // checks the writes that are done
  Write& remember(const Runs& runs, u64 lanes, u32 size, bool local);
  void keep_old(Write& write);

  AuditState state_;
  RegisterAudit registers_{state_};
  GlobalAudit global_{state_};
  LdsAudit lds_{state_};
  Write writes_[2];  // of the instruction that runs
  u32 write_count_ = 0;
};

// Audits of workgroups that have ended. Later workgroups use them again, with their storage.
class AuditPool {
 public:
  std::unique_ptr<Audit> start(AuditLaunch& launch, u64 workgroup, u32 waves, u32 lds_size);
  void end(std::unique_ptr<Audit> audit) { spare_.push_back(std::move(audit)); }

 private:
  std::vector<std::unique_ptr<Audit>> spare_;
};
