// An audit watches a launch for faults that values need not show: races, lost writes, registers
// used before their load has arrived, and storage read before it is written.
//
// It runs beside the handlers, one source instruction at a time, from a table that the Python side
// makes of the assembler text (kernel_gym/sim/compiler/audit_tables.py).
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "audit/runs.h"
#include "audit/shadow.h"
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
  u8 exposed;        // of the reads, so many come first that may be of undefined registers
  u8 defines;        // of the writes, so many come first that may define something
  Registers reads[kRangesRead];
  Registers writes[kRangesWritten];

  bool quiet() const { return !(kind | exposed | defines); }  // matters only to loads under way
};
static_assert(sizeof(AuditInst) == 42, "shared with Python");

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
static_assert(sizeof(Suspect) == 48, "shared with Python");

// One execution of a global memory instruction by a wave.
struct Event {
  u32 workgroup;
  u32 tick;   // releases before it in the whole launch
  u32 epoch;  // barriers that the workgroup had passed
  u32 instruction;
  u32 wave;
};

constexpr u32 kMostEvents = 1u << 26;
constexpr size_t kMostSuspects = 32;

// The bytes of `size` at `place` that lie in the word at `word`, as bits.
SIM_INLINE u8 bytes_in_word(u64 place, u32 size, u64 word) {
  if (LIKELY(word >= place && word + 4 <= place + size)) return kBytes;
  u8 bits = 0;
  for (u32 b = 0; b < 4; b++) bits |= (word + b >= place && word + b < place + size) << b;
  return bits;
}

// Which bytes differ, as bits, from the bits that do.
SIM_INLINE u32 bytes_changed(u32 differ) {
  constexpr u32 kLow = 0x7f7f7f7f;
  const u32 high = (((differ & kLow) + kLow) | differ) >> 7 & 0x01010101;
  return high * 0x01020408 >> 24 & 15;
}

class Audit;

// What all workgroups of an audited launch share.
class AuditLaunch {
 public:
  // `last`: the launch before, if any, whose storage is used again.
  AuditLaunch(const std::vector<AuditInst>& table, u64 workgroups, u32 rows, AuditLaunch* last);
  ~AuditLaunch();
  // The audit of a workgroup, from when it starts until it ends.
  std::unique_ptr<Audit> start(u64 workgroup, u32 waves, u32 lds_size);
  void end(std::unique_ptr<Audit> audit);

  const Event& event(Mark mark) const { return events[mark >> 6]; }
  bool released(const Event& event, u32 acquired) const;

  const std::vector<AuditInst>& table;
  const u32 rows;
  bool compares = false;  // compare-and-swap loops begin with a plain load of what they update
  u32 tick = 0;
  std::vector<std::vector<u32>> releases;  // ticks, by workgroup
  std::vector<Event> events{1};            // none has number 0
  std::vector<Suspect> suspects;
  std::vector<std::unique_ptr<std::vector<u8>>> maps;
  std::vector<u8> row_suspects;
  std::unordered_map<u32, u8*> lds_suspects;  // map by instruction
  std::unordered_map<u32, std::unique_ptr<Poison>> poisons;  // by instruction
  Shadow shadow;

 private:
  std::vector<std::unique_ptr<Audit>> spare_;
};

// The audit of one resident workgroup.
class Audit {
 public:
  void begin(AuditLaunch& launch, u64 workgroup, u32 waves, u32 lds_size);

  // Around the operations of a wave; false after a fault.
  bool before(Wave& wave, const Inst* inst) {
    WaveState& state = waves_[wave.number];
    state.last = inst;
    if (state.cursor > inst->index) return true;
    if (LIKELY(state.cursor == inst->index) && table_[inst->index].quiet() && !state.under_way()) {
      state.cursor++;
      return true;
    }
    return catch_up(wave, state, inst);
  }
  bool after(Wave& wave, const Inst* inst) { return LIKELY(!write_count_) || look(wave, inst); }
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
    bool under_way() const { return !(vector.empty() && local.empty()); }
    const Inst* last = nullptr;
    u32 cursor = 0;                      // next source instruction
    u32 acquired = 0;                    // tick
    bool acquired_in_epoch = false;
    u32 issued[2] = {0, 0};              // local and vector memory operations so far
    u32 landed[2] = {0, 0};              // of them done when the last barrier was reached
    u32 last_write[2] = {0, 0};          // to LDS, among the issued ones
  };
  // A write whose effect is looked at when it is done.
  struct Write {
    u64 addresses[kLanes];  // in this process; of the first lanes of runs only, if ascending
    alignas(64) u8 old[kLanes * 16];  // run after run
    u64 lanes;
    Runs runs;
    u32 size;
    u32 source;  // number of the operand that is stored
    bool local;
    bool ascending;  // lanes in order, so that none undoes another
  };
  // Of a word: 16 bits for the waves that touched each byte, in one epoch.
  struct alignas(32) LdsWord {
    u64 writers = 0, atomics = 0, readers = 0;
    u32 reader = 0;  // the last instruction
    u32 epoch = 0;
  };
  LdsWord& lds_word(u32 number) {
    LdsWord& word = lds_[number];
    if (word.epoch != epoch_) word = {0, 0, 0, 0, epoch_};
    return word;
  }
  struct LdsWrite {
    u32 instruction = 0;
    u32 epoch = ~0u;
    u32 sequence = 0;  // among the wave's operations of that counter
    u16 wave = 0;
    u16 vector = 0;    // counted by vmcnt: a load that writes LDS
  };
  // Bytes of one instruction that lie one behind the other, of lanes from `lane` on.
  struct Span {
    u32 lane;
    u32 size;   // of a lane
    u32 bytes;
    u64 start;  // address, or place in LDS
    u32 lane_of(u64 place) const { return lane + (u32)((place - start) / size); }
  };

  bool catch_up(Wave& wave, WaveState& state, const Inst* inst);
  bool step(Wave& wave, WaveState& state, u32 index, const Inst* inst);
  bool look(Wave& wave, const Inst* inst);  // at what has been written
  bool uses_too_early(const WaveState& state, const AuditInst& info, u32& load);
  void wait(WaveState& state, const AuditInst& info);
  void land(WaveState& state, const Flight& flight);
  bool in_flight(const WaveState& state, const Registers& range, u16 ignored, u32& instruction);
  void note_registers(Wave& wave, WaveState& state, const AuditInst& info, u32 index);
  void start_load(WaveState& state, const AuditInst& info, u32 index);
  Write& remember(const Runs& runs, u64 lanes, u32 size, bool local);
  void keep_old(Write& write);
  bool finish(Wave& wave, const Inst* inst, const Write& write);
  bool lost(Wave& wave, const Inst* inst, const Write& write);
  bool read(Wave& wave, const Inst* inst, const Span& span, Mark made);
  bool read_word(Wave& wave, const Inst* inst, const Span& span, u64 address, Mark made);
  bool wrote(Wave& wave, const Inst* inst, const Span& span, const u8* old, Mark made);
  bool wrote_lane(Wave& wave, const Inst* inst, const Span& lane, const u8* old, Mark made);
  bool wrote_word(Wave& wave, const Inst* inst, const Span& span, u64 address, Mark made,
                  u32 changed);
  bool read_lds(Wave& wave, const Inst* inst, const Span& span);
  bool read_lds_word(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u32 word);
  bool read_words(const Wave& wave, u32 instruction, const u32* places, const Runs& runs, u32 size);
  bool wrote_lds(Wave& wave, const Inst* inst, const Write& write);
  bool wrote_words(const Wave& wave, u32 instruction, const Write& write);
  bool wrote_span(Wave& wave, const Inst* inst, const Span& span, const u8* old);
  bool wrote_lds_word(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u32 changed,
                      u32 word);
  bool lds_defined(u32 place, u32 bytes);
  void begin_lds(u32 lds_size);
  LdsWrite lds_write(const Wave& wave, u32 instruction);
  void suspect_lds(const Wave& wave, u32 instruction, u32 lane, u32 place, u32 size);
  bool ordered(const Wave& wave, Mark mark) const;
  Mark mark(const Wave& wave, const Inst* inst, u8 flags);
  bool race(Wave& wave, const Inst* inst, u32 lane, u64 address, Mark other, bool reading);
  bool in_flight_at_barrier(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size,
                            u32 word);
  bool lds_race(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u64 others,
                u32 instruction);

  AuditLaunch* launch_ = nullptr;
  const AuditInst* table_ = nullptr;
  u64 workgroup_ = 0;
  u32 epoch_ = 0;        // barriers before; goes on from workgroup to workgroup
  u32 first_epoch_ = 0;  // of this one
  bool late_ = false;  // writes to LDS were under way at the last barrier
  std::vector<WaveState> waves_;
  std::vector<LdsWord> lds_;
  std::vector<LdsWrite> lds_written_;   // the last write that changed the word
  std::vector<u8> lds_defined_;         // by byte
  u32 lds_defined_until_ = 0;           // all bytes before are defined
  Write writes_[2];  // of the instruction that runs
  u32 write_count_ = 0;
};
