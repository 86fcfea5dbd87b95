// The audit of LDS: which waves have touched each byte since the last barrier.
#pragma once

#include "audit/late_reads.h"

class LdsAudit {
 public:
  explicit LdsAudit(AuditState& state) : state_(state), late_reads_(state) {}

  void begin_workgroup(u32 lds_size);
  void barrier(const std::vector<Wave>& waves) { late_reads_.barrier(waves); }
  // Before a load that is within bounds and aligned; false after a fault.
  bool read(Wave& wave, const Inst* inst, const u32* places, const Runs& runs, u64 lanes, u32 size);
  // After a write. Lanes that store different values to one place are no fault here: compilers let
  // lanes that hold the same sum, but for its rounding, all store it.
  bool wrote(Wave& wave, const Inst* inst, const Write& write);

 private:
  // Of a word: 16 bits for the waves that touched each byte, in one epoch.
  struct alignas(32) LdsWord {
    u64 writers = 0, atomics = 0, readers = 0;
    u32 reader = 0;  // the last instruction
    u32 epoch = 0;
  };
  struct LdsWrite {
    u32 instruction = 0;
    u32 epoch = ~0u;
    u32 sequence = 0;  // among the wave's operations of that counter
    u16 wave = 0;
    u16 vector = 0;  // counted by vmcnt: a load that writes LDS
  };
  LdsWord& word_at(u32 number) {
    LdsWord& word = words_[number];
    if (word.epoch != state_.epoch) word = {0, 0, 0, 0, state_.epoch};
    return word;
  }
  bool read_words(const Wave& wave, u32 instruction, const u32* places, const Runs& runs, u32 size);
  bool read_span(Wave& wave, const Inst* inst, const Span& span);
  bool read_word(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u32 word);
  bool wrote_words(const Wave& wave, u32 instruction, const Write& write);
  bool wrote_span(Wave& wave, const Inst* inst, const Span& span, const u8* old);
  bool wrote_word(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u32 changed,
                  u32 word);
  bool is_defined(u32 place, u32 bytes);
  LdsWrite write_of(const Wave& wave, u32 instruction);
  void suspect(const Wave& wave, u32 instruction, u32 lane, u32 place, u32 size);
  bool in_flight_at_barrier(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u32 word);
  bool overtakes_read(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u32 changed);
  bool race(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u64 others,
            u32 instruction);

  AuditState& state_;
  LateReads late_reads_;
  std::vector<LdsWord> words_;
  std::vector<LdsWrite> written_;  // the last write that changed the word
  std::vector<u8> defined_;  // by byte
  u32 defined_until_ = 0;  // all bytes before are defined
};
