// The state that all workgroups of an audited launch share.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "audit/shadow.h"
#include "audit/table.h"

// A load that gets another value in a second run, in some waves of each workgroup.
struct Poison {
  u32 instruction;
  Registers target;
  std::unordered_map<u64, u32> waves;
};

// A read of storage before it was written, or a load that races with a store of another wave of
// the workgroup. A second run with other contents decides whether that matters. Mirrored by
// kernel_gym/sim/layouts.py.
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
  u32 sequence;  // among the wave's operations that vmcnt counts; 0: of another kind
};

// The releases of one workgroup: what makes its earlier accesses visible to those who acquire later.
class Releases {
 public:
  // `landed`: how many of the wave's operations that vmcnt counts are done.
  void add(u32 tick, u32 wave, u32 epoch, u32 landed);
  // The tick of the first release that follows an event of the workgroup; ~0: there is none.
  u32 after(const Event& event) const;

 private:
  struct OfEpoch {
    u32 epoch, tick;
  };
  struct OfWave {
    u32 tick, landed;
  };
  std::vector<OfEpoch> epochs_;             // the first release in each
  std::vector<std::vector<OfWave>> waves_;  // all releases, by wave
};

constexpr u32 kMostEvents = 1u << 26;
constexpr size_t kMostSuspects = 32;

// Events of global memory, releases and suspects.
class AuditLaunch {
 public:
  // `last`: the launch before, if any. Its storage is used again.
  AuditLaunch(const std::vector<AuditInst>& table, u64 workgroups, u32 rows, AuditLaunch* last);

  const Event& event(Mark mark) const { return events[mark >> 6]; }
  bool released(const Event& event, u32 acquired) const;

  const std::vector<AuditInst>& table;
  const u32 rows;
  bool compares = false;  // compare-and-swap loops begin with a plain load of what they update
  u32 tick = 0;
  std::vector<Releases> releases;          // by workgroup
  std::vector<Event> events{1};            // number 0 stands for no event
  std::vector<Suspect> suspects;
  std::vector<std::unique_ptr<std::vector<u8>>> maps;
  std::vector<u8> row_suspects;
  std::unordered_map<u32, u8*> lds_suspects;  // map by instruction
  std::unordered_map<u32, std::unique_ptr<Poison>> poisons;  // by instruction
  Shadow shadow;
};
