// Lanes of an access that lie one behind the other: whoever looks at all that is accessed looks at
// few runs instead of 64 lanes.
#pragma once

#include "lanes.h"

struct Runs {
  u64 starts;     // the first lanes
  u64 adjoining;  // lanes that lie right behind the lane before them

  u32 length(u32 first) const {
    const u64 rest = adjoining >> 1 >> first;
    return 1 + (~rest ? __builtin_ctzll(~rest) : 63);
  }
};

// Runs of lanes of `size` bytes each, of which `lanes` are active.
SIM_INLINE Runs runs_of(const u32* places, u64 lanes, u32 size) {
  alignas(64) u32 before[kLanes];
  before[0] = places[0];
  memcpy(before + 1, places, sizeof before - 4);
  u64 adjoining = 0;
  for (int c = 0; c < kChunks; c++) {
    adjoining |= to_bits((I)(load(places, c) == load(before, c) + size), c);
  }
  adjoining &= lanes & lanes << 1;
  return {lanes & ~adjoining, adjoining};
}

SIM_INLINE Runs runs_of(const u64* addresses, u64 lanes, u32 size) {
  if (lanes == 1) return {1, 0};  // there may be one address only
  alignas(64) u32 low[kLanes];
  u64 adjoining = 0;
  for (int l = 0; l < kLanes; l++) low[l] = (u32)addresses[l];
  alignas(64) u32 high[kLanes];
  for (int l = 0; l < kLanes; l++) high[l] = (u32)(addresses[l] >> 32);
  adjoining = runs_of(low, lanes, size).adjoining & runs_of(high, lanes, 0).adjoining;
  return {lanes & ~adjoining, adjoining};
}
