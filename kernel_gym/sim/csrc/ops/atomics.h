// The arithmetic of atomic operations. Mirrored by kernel_gym/sim/layouts.py.
#pragma once

#include "wave.h"

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
