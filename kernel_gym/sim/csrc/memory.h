// Access checks, apertures and atomic operations: what memory instructions of all kinds share.
#pragma once

#include "movement.h"

// Flat addresses with these upper halves name LDS and scratch.
constexpr u32 kSharedAperture = 0x10000;
constexpr u32 kPrivateAperture = 0x20000;

// ---- checks. They raise the fault themselves and return false.
bool check_global(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size,
                  bool write);
bool check_lds(Wave& wave, const Inst* inst, const u32* addresses, u64 lanes, u32 offset, u32 size);
// Whether a range lies in an allocation that may be accessed so; raises nothing.
bool enter_range(Wave& wave, const Inst* inst, u64 low, u64 high, bool write);
bool check_scalar(Wave& wave, const Inst* inst, u64 address, u32 size);

// The allocation that an instruction accessed last, or one that shares its place here.
SIM_INLINE Region& recent_region(Wave& wave, const Inst* inst) {
  return wave.recent[inst->index % kRecentRegions];
}
SIM_INLINE bool inside(const Region& region, u64 low, u64 high) {
  return low >= region.start && high <= region.end && low <= high;
}

// ---- atomics
enum class Atomic : u32 {
  kAdd,
  kSub,
  kMinSigned,
  kMinUnsigned,
  kMaxSigned,
  kMaxUnsigned,
  kAnd,
  kOr,
  kXor,
  kIncrement,
  kDecrement,
  kSwap,
  kCompareSwap,
  kAddFloat,
  kMinFloat,
  kMaxFloat,
  kAddPackedF16,
  kAddPackedBf16,
};

u32 apply_atomic(Atomic op, u32 old, u32 value, u32 compare);
u64 apply_atomic(Atomic op, u64 old, u64 value, u64 compare);
