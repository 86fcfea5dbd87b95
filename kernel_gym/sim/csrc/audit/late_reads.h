// Reads of LDS that were under way when their waves came to the last barrier. A barrier does not
// wait for LDS: another wave may overwrite what such a read has not fetched yet.
#pragma once

#include <vector>

#include "audit/audit_state.h"

class LateReads {
 public:
  explicit LateReads(AuditState& state) : state_(state) {}

  void begin_workgroup(u32 lds_size);
  // A read of `wave`, the last operation that it has issued.
  void note(u32 wave, u32 instruction, const u32* places, const Runs& runs, u32 size);
  // All waves have arrived; `waves` says which have ended and use no result any more.
  void barrier(const std::vector<Wave>& waves);

  // Of a byte of LDS: the waves whose read was under way at the last barrier.
  struct Byte {
    u32 epoch = ~0u;
    u32 waves = 0;
    u32 instruction = 0;  // of the last of them
  };
  bool any() const { return any_; }
  // The reads by other waves than `wave`; null if there are none.
  const Byte* at(u32 place, u32 wave) const {
    const Byte& byte = bytes_[place];
    return byte.epoch == state_.epoch && byte.waves & ~(1u << wave) ? &byte : nullptr;
  }

 private:
  // lgkmcnt counts 15 operations at most, and an instruction reads two places at most.
  static constexpr u32 kKept = 32;
  struct Read {
    u32 places[kLanes];
    Runs runs;
    u32 size;
    u32 instruction;
    u32 sequence;  // among the wave's operations that lgkmcnt counts
  };
  struct WaveReads {
    Read kept[kKept];
    u32 count = 0;  // of all reads so far
  };
  void mark(u32 wave, const Read& read);

  AuditState& state_;
  std::vector<WaveReads> waves_;
  std::vector<Byte> bytes_;  // of all LDS, from the first mark on
  u32 lds_size_ = 0;
  bool any_ = false;
};
