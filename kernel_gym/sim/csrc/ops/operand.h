// The vector sources of an instruction, as rows of 64 words.
#pragma once

#include "wave.h"

// Applies the modifiers of `operand` to its lanes. Out of line, because it is rare.
void modified_source(const Wave& wave, const Operand& operand, u32* out);
void modified_source64(const Wave& wave, const Operand& operand, u32* out);

SIM_INLINE const u32* direct(const Wave& wave, const Operand& operand) {
  return wave.bases[operand.space] + operand.index;
}

// The 64 words of a 32-bit source. They are built in `space` unless they are already in a row.
SIM_INLINE const u32* source(const Wave& wave, const Operand& operand, Row& space) {
  if (LIKELY(operand.space <= kConstant)) return direct(wave, operand);
  if (operand.space == kScalar) {
    splat_row(space.words, wave.scalars[operand.index]);
  } else {
    modified_source(wave, operand, space.words);
  }
  return space.words;
}

// The low and the high row of a 64-bit source.
SIM_INLINE const u32* source64(const Wave& wave, const Operand& operand, RowPair& space) {
  if (LIKELY(operand.space <= kConstant)) return direct(wave, operand);
  if (operand.space == kScalar) {
    splat_row(space.words, wave.scalars[operand.index]);
    splat_row(space.words + kLanes, wave.scalars[operand.index + 1]);
  } else {
    modified_source64(wave, operand, space.words);
  }
  return space.words;
}

SIM_INLINE u64 pair(const u32* rows, int lane) {
  return (u64)rows[lane] | ((u64)rows[kLanes + lane] << 32);
}

SIM_INLINE bool has_modifiers(const Inst* inst, int sources) {
  u32 spaces = 0;
  for (int i = 0; i < sources; i++) spaces |= inst->src[i].space;
  return UNLIKELY(spaces & kModified);
}

// Runs `handler` on a copy of the instruction whose first `count` sources have had their modifiers
// applied; those with a bit in `wide` have 64 bits. As the rare case it is a tail call: the usual
// one needs no stack frame.
const Inst* run_modified(Wave& wave, const Inst* inst, Handler handler, u32 count, u32 wide = 0);
