// The state of a resident workgroup that the parts of its audit share. Calls go one way: Audit
// calls its three parts, and these use this state, AuditLaunch and Shadow.
#pragma once

#include <vector>

#include "audit/audit_launch.h"
#include "audit/runs.h"

// A load under way.
struct Flight {
  Registers target;
  u32 instruction;
  u16 counter;
};

// What an audit knows of one wave.
struct WaveState {
  std::vector<u64> defined;            // lanes, by row
  std::vector<u8> pending;             // loads under way, by row and then by scalar
  std::vector<Flight> vector, local;   // oldest first
  bool under_way() const { return !(vector.empty() && local.empty()); }
  const Inst* last = nullptr;
  u32 cursor = 0;                      // next source instruction
  u32 acquired = 0;                    // tick
  bool acquired_in_epoch = false;
  u32 issued[2] = {0, 0};              // local and vector memory operations so far
  u32 landed[2] = {0, 0};              // of them done when the last barrier was reached
  u32 last_write[2] = {0, 0};          // to LDS, among the issued ones
};

struct AuditState {
  AuditLaunch* launch = nullptr;
  const AuditInst* table = nullptr;
  u64 workgroup = 0;
  u32 epoch = 0;        // barriers before, counted on from workgroup to workgroup
  u32 first_epoch = 0;  // of this workgroup
  bool late = false;    // writes to LDS were under way at the last barrier
  std::vector<WaveState> waves;
};

// A write. Its effect is checked when it is done.
struct Write {
  u64 addresses[kLanes];  // in this process; of the first lanes of runs only, if ascending
  alignas(64) u8 old[kLanes * 16];  // run after run
  u64 lanes;
  Runs runs;
  u32 size;
  u32 source;  // number of the operand that is stored
  bool local;
  bool ascending;  // lanes in order, so that no lane overwrites another
};

// Adjacent bytes of one instruction, of lanes from `lane` on.
struct Span {
  u32 lane;
  u32 size;   // of a lane
  u32 bytes;
  u64 start;  // address, or place in LDS
  u32 lane_of(u64 place) const { return lane + (u32)((place - start) / size); }
};

// The bytes of `size` at `place` that lie in the word at `word`, as bits.
SIM_INLINE u8 bytes_in_word(u64 place, u32 size, u64 word) {
  if (LIKELY(word >= place && word + 4 <= place + size)) return kBytes;
  u8 bits = 0;
  for (u32 b = 0; b < 4; b++) bits |= (word + b >= place && word + b < place + size) << b;
  return bits;
}

// Which bytes differ, as bits, from the xor of two words.
SIM_INLINE u32 bytes_changed(u32 differ) {
  constexpr u32 kLow = 0x7f7f7f7f;
  const u32 high = (((differ & kLow) + kLow) | differ) >> 7 & 0x01010101;
  return high * 0x01020408 >> 24 & 15;
}
