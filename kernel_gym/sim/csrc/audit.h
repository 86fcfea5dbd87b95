// An audit watches a launch for faults that values need not show: races, lost writes, registers
// used before their load has arrived, and storage read before it is written.
//
// It runs beside the handlers, one source instruction at a time, from a table that the Python side
// makes of the assembler text (kernel_gym/sim/audited.py).
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "wave.h"

// What an instruction does, as bits of AuditInst::kind.
enum AuditKind : u16 {
  kReadsMemory = 1,
  kWritesMemory = 2,
  kAtomicAccess = 4,     // does not race with other atomics
  kAcquires = 8,
  kReleases = 16,
  kVectorCounter = 32,   // counted by vmcnt
  kLocalCounter = 64,    // counted by lgkmcnt, in order
  kScalarCounter = 128,  // counted by lgkmcnt, in any order
  kWaits = 256,
  kHighHalf = 512,       // stores the upper half of its register
  kAllLanesWritten = 1024,  // the destination is written whatever EXEC says
  kCompares = 2048,      // an atomic that writes only if a value read before is still there
};

constexpr bool atomic_only(u16 kind) { return kind & kAtomicAccess; }
// A load that writes LDS: reads one memory and writes the other.
constexpr bool copies(u16 kind) {
  return (kind & kReadsMemory) && (kind & kWritesMemory) && !atomic_only(kind);
}

// Consecutive registers: vector rows, or scalars if the top bit of `count` is set.
struct Registers {
  u16 first;
  u16 count;
};
constexpr u16 kScalarRange = 0x8000;
constexpr u32 kRangesRead = 6, kRangesWritten = 2;

// One source instruction; the Python side writes this layout.
struct AuditInst {
  u16 kind;
  u16 vector_limit;  // of a wait; 0xffff: none
  u16 local_limit;
  u16 alignment;     // that an LDS access must have; 0: any
  Registers reads[kRangesRead];
  Registers writes[kRangesWritten];
};
static_assert(sizeof(AuditInst) == 40, "shared with Python");

// Loads whose values must not matter: by workgroup, the waves whose executions are meant.
struct Poison {
  u32 instruction;
  Registers target;
  std::unordered_map<u64, u32> waves;
};

// Storage that was read before it was written, or a load that races with a store of another wave
// of the workgroup. Whether that matters, a second run with other contents decides. Mirrored by
// kernel_gym/sim/native.py.
enum SuspectKind : u32 { kRegisterSuspect, kLdsSuspect, kRaceSuspect };
struct Suspect {
  u32 kind;
  u32 instruction;
  u32 wave;
  u32 lane;
  u64 workgroup;
  u64 place;         // row, byte of LDS, or address
  const void* map;   // of LDS: which bytes, one a byte; of a race: the Poison
  u32 other_instruction;
  u32 other_wave;
};

// One execution of a global memory instruction by a wave.
struct Event {
  u32 workgroup;
  u32 tick;   // releases before it in the whole launch
  u32 epoch;  // barriers that the workgroup had passed
  u32 instruction;
  u32 wave;
};

// Who touched a word: number of an event << 6 | flags << 4 | bytes of the word. 0: nobody.
using Mark = u32;
constexpr u32 kMostEvents = 1u << 26;
constexpr Mark kAtomicMark = 1 << 4;  // made by an atomic
constexpr Mark kSharedMark = 2 << 4;  // others have written the same value
constexpr Mark kBytes = 15;
constexpr size_t kMostSuspects = 32;

// The bytes of `size` at `place` that lie in the word at `word`, as bits.
SIM_INLINE u8 bytes_in_word(u64 place, u32 size, u64 word) {
  if (LIKELY(word >= place && word + 4 <= place + size)) return kBytes;
  u8 bits = 0;
  for (u32 b = 0; b < 4; b++) bits |= (word + b >= place && word + b < place + size) << b;
  return bits;
}

// What all workgroups of an audited launch share.
class AuditLaunch {
 public:
  AuditLaunch(const std::vector<AuditInst>& table, u64 workgroups, u32 rows)
      : table(table), rows(rows), releases(workgroups), row_suspects(rows, 0) {
    for (const AuditInst& info : table) {
      compares |= (info.kind & kCompares) != 0;
      loads_lds |= copies(info.kind);
    }
  }

  struct Word {
    Mark write, read, first_read;
  };
  Word& word(u64 address) {
    const u64 index = address / 4, page = index / kPageWords;
    const Recent& recent = recent_[page % kRecentPages];
    return (LIKELY(recent.page == page) ? recent.words : words_of(page))[index % kPageWords];
  }
  const Event& event(Mark mark) const { return events[mark >> 6]; }
  bool released(const Event& event, u32 acquired) const;

  const std::vector<AuditInst>& table;
  const u32 rows;
  bool compares = false;  // compare-and-swap loops begin with a plain load of what they update
  bool loads_lds = false;  // some loads write LDS
  u32 tick = 0;
  std::vector<std::vector<u32>> releases;  // ticks, by workgroup
  std::vector<Event> events{1};            // none has number 0
  std::vector<Suspect> suspects;
  std::vector<std::unique_ptr<std::vector<u8>>> maps;
  std::vector<u8> row_suspects;
  std::unordered_map<u32, u8*> lds_suspects;  // map by instruction
  std::unordered_map<u32, std::unique_ptr<Poison>> poisons;  // by instruction

 private:
  static constexpr u64 kPageWords = 1024, kRecentPages = 64;
  struct Recent {
    u64 page = ~0ull;
    Word* words = nullptr;
  };
  Word* words_of(u64 page);
  std::unordered_map<u64, std::unique_ptr<Word[]>> pages_;
  Recent recent_[kRecentPages];
};

// The audit of one resident workgroup.
class Audit {
 public:
  Audit(AuditLaunch& launch, u64 workgroup, u32 waves, u32 lds_size);

  // Around the operations of a wave; false after a fault.
  bool before(Wave& wave, const Inst* inst);
  bool after(Wave& wave, const Inst* inst);
  void block(Wave& wave, const Inst* head);
  void barrier();  // all waves have arrived
  void grid_barrier();  // all waves of all workgroups have arrived

  // From the handlers, before an access that is within bounds; false after a fault.
  bool global(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size);
  bool lds(Wave& wave, const Inst* inst, const u32* addresses, u64 lanes, u32 offset, u32 size);

 private:
  struct Flight {
    Registers target;
    u32 instruction;
    u16 counter;
  };
  struct WaveState {
    std::vector<u64> defined;            // lanes, by row
    std::vector<u8> pending;             // loads under way, by row and then by scalar
    std::vector<Flight> vector, local;   // oldest first
    const Inst* last = nullptr;
    u32 cursor = 0;                      // next source instruction
    u32 acquired = 0;                    // tick
    bool acquired_in_epoch = false;
    u32 issued[2] = {0, 0};              // local and vector memory operations so far
    u32 landed[2] = {0, 0};              // of them done when the last barrier was reached
  };
  // A write whose effect is looked at when it is done.
  struct Write {
    u64 addresses[kLanes];  // in this process
    u8 old[kLanes * 16];
    u64 lanes;
    u32 size;
    u32 source;  // number of the operand that is stored
    bool local;
    bool ascending;  // lanes in order, so that none undoes another
  };
  struct LdsWord {  // since the last barrier: 16 bits for the waves that touched each byte
    u64 writers, readers, atomics;
  };
  struct LdsWrite {  // the last one that changed a word
    u32 epoch = ~0u;
    u32 sequence = 0;  // among the wave's operations of that counter
    u16 wave = 0;
    u16 vector = 0;    // counted by vmcnt: a load that writes LDS
  };

  bool step(Wave& wave, WaveState& state, u32 index, const Inst* inst);
  bool uses_too_early(const WaveState& state, const AuditInst& info, u32& load);
  void wait(WaveState& state, const AuditInst& info);
  void land(WaveState& state, const Flight& flight);
  bool in_flight(const WaveState& state, const Registers& range, u16 ignored, u32& instruction);
  void note_reads(Wave& wave, WaveState& state, const AuditInst& info, u32 index);
  void start_load(WaveState& state, const AuditInst& info, u32 index);
  void remember(Wave& wave, const u64* addresses, u64 lanes, u32 size, bool local);
  bool finish(Wave& wave, const Inst* inst, const Write& write);
  bool lost(Wave& wave, const Inst* inst, const Write& write);
  bool wrote_lds(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u32 changed);
  bool wrote_word(Wave& wave, const Inst* inst, u32 lane, u64 address, Mark made, u8 changed);
  bool read_word(Wave& wave, const Inst* inst, u32 lane, u64 address, Mark made);
  bool read_lds(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size);
  void suspect_lds(const Wave& wave, u32 instruction, u32 lane, u32 place, u32 size);
  bool ordered(const Wave& wave, Mark mark) const;
  Mark mark(const Wave& wave, const Inst* inst, u8 flags);
  bool race(Wave& wave, const Inst* inst, u32 lane, u64 address, Mark other, bool reading);
  bool in_flight_at_barrier(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size);
  bool lds_race(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u64 others,
                u32 instruction);

  AuditLaunch& launch_;
  const u64 workgroup_;
  u32 epoch_ = 0;
  bool late_ = false;  // writes to LDS may have been under way at the last barrier
  std::vector<WaveState> waves_;
  std::vector<LdsWord> lds_;
  std::vector<u32> lds_writer_, lds_reader_;  // instructions, by word
  std::vector<LdsWrite> lds_written_;         // by word
  std::vector<u8> lds_defined_;
  Write writes_[2];  // of the instruction that runs
  u32 write_count_ = 0;
};
