// Checks that the memory an instruction touches belongs to the kernel.
#pragma once

#include "wave.h"

// Checks raise the fault themselves and return false.
bool check_global(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size,
                  bool write);
bool check_lds(Wave& wave, const Inst* inst, const u32* places, u64 lanes, u32 size);
// The byte offsets in LDS of all lanes: address plus offset, which wraps at 32 bits.
void lds_places(const u32* addresses, u32 offset, Row& out);
// Checks an LDS access of the active lanes and records it.
bool locate_lds(Wave& wave, const Inst* inst, const u32* places, u32 size);
// Notes an access outside that is tolerated, if it is the first one of the launch.
void note_outside(Wave& wave, const Inst* inst, FaultKind kind, u32 lane, u64 address, u32 size);
// Whether a range lies in an allocation that allows the access. Raises no fault.
bool enter_range(Wave& wave, const Inst* inst, u64 low, u64 high, bool write);
bool check_scalar(Wave& wave, const Inst* inst, u64 address, u32 size);

// The allocation that an instruction accessed last, or another instruction of the same slot.
SIM_INLINE Region& recent_region(Wave& wave, const Inst* inst) {
  return wave.recent[inst->index % kRecentRegions];
}
SIM_INLINE bool inside(const Region& region, u64 low, u64 high) {
  return low >= region.start && high <= region.end && low <= high;
}
