// Runs of lanes that access adjacent memory. Code that checks an access handles a few runs instead
// of 64 lanes.
#pragma once

#include "lanes.h"

struct Runs {
  u64 starts;     // the first lanes
  u64 adjoining;  // lanes that access memory right after that of the lane before

  u32 length(u32 first) const {
    const u64 rest = adjoining >> 1 >> first;
    return 1 + (~rest ? __builtin_ctzll(~rest) : 63);
  }
};

// A row with padding in front, so that the words before all lanes can be loaded.
struct PaddedRow {
  alignas(64) u32 padding[kWidth];
  u32 words[kLanes];
};

// Runs of lanes of `size` bytes each, of which `lanes` are active.
SIM_INLINE Runs runs_of(const PaddedRow& places, u64 lanes, u32 size) {
  typedef u32 Unaligned __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));
  u64 adjoining = 0;
  for (int c = 0; c < kChunks; c++) {
    const U before = (U) * (const Unaligned*)(places.words + kWidth * c - 1);
    adjoining |= to_bits((I)(load(places.words, c) == before + size), c);
  }
  adjoining &= lanes & lanes << 1;
  return {lanes & ~adjoining, adjoining};
}

SIM_INLINE Runs runs_of(const u64* addresses, u64 lanes, u32 size) {
  if (lanes == 1) return {1, 0};  // there may be one address only
  PaddedRow low, high;
  for (int l = 0; l < kLanes; l++) low.words[l] = (u32)addresses[l];
  for (int l = 0; l < kLanes; l++) high.words[l] = (u32)(addresses[l] >> 32);
  const u64 adjoining = runs_of(low, lanes, size).adjoining & runs_of(high, lanes, 0).adjoining;
  return {lanes & ~adjoining, adjoining};
}
