// The table of source instructions. The Python side makes it from the assembler text
// (kernel_gym/sim/compiler/audit_tables.py).
#pragma once

#include "wave.h"

// What an instruction does, as bits of AuditInst::kind.
enum AuditKind : u16 {
  kReadsMemory = 1,
  kWritesMemory = 2,
  kAtomicAccess = 4,  // does not race with other atomics
  kAcquires = 8,
  kReleases = 16,
  kVectorCounter = 32,  // counted by vmcnt
  kLocalCounter = 64,  // counted by lgkmcnt, in order
  kScalarCounter = 128,  // counted by lgkmcnt, in any order
  kWaits = 256,
  kHighHalf = 512,  // stores the upper half of its register
  kAllLanesWritten = 1024,  // writes all lanes of the destination, for every EXEC
  kCompares = 2048,  // an atomic that writes only if a value read before is still there
};

constexpr u16 kCounters = kVectorCounter | kLocalCounter | kScalarCounter;

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
  u16 alignment;  // that an LDS access must have; 0: any
  u8 exposed;  // number of first `reads` that may be of undefined registers
  u8 defines;  // number of first `writes` that may define something
  Registers reads[kRangesRead];
  Registers writes[kRangesWritten];

  bool quiet() const { return !(kind | exposed | defines); }  // it matters only to loads under way
};
static_assert(sizeof(AuditInst) == 42, "shared with Python");
