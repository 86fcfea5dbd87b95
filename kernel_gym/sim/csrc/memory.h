// Access checks and the movement of data between memory and vector rows.
#pragma once

#include "wave.h"

// What one lane reads or writes.
enum class Kind : u32 {
  kWords1,
  kWords2,
  kWords3,
  kWords4,
  kU8,
  kI8,
  kU16,
  kI16,
  kLow16,      // 16 bits into / from the low half, the high half is kept
  kHigh16,     // 16 bits into / from the high half, the low half is kept
  kU8Low,      // byte, zero-extended to 16 bits, into the low half
  kU8High,
  kI8Low,
  kI8High,
};

constexpr u32 size_of(Kind kind) {
  switch (kind) {
    case Kind::kWords1:
      return 4;
    case Kind::kWords2:
      return 8;
    case Kind::kWords3:
      return 12;
    case Kind::kWords4:
      return 16;
    case Kind::kU16:
    case Kind::kI16:
    case Kind::kLow16:
    case Kind::kHigh16:
      return 2;
    default:
      return 1;
  }
}
constexpr bool is_words(Kind kind) { return kind <= Kind::kWords4; }

// Flat addresses with these upper halves name LDS and scratch.
constexpr u32 kSharedAperture = 0x10000;
constexpr u32 kPrivateAperture = 0x20000;

// ---- checks. They raise the fault themselves and return false.
bool check_global(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size,
                  bool write);
bool check_lds(Wave& wave, const Inst* inst, const u32* addresses, u64 lanes, u32 offset, u32 size);
bool check_scalar(Wave& wave, const Inst* inst, u64 address, u32 size);

// ---- word transposition between lane order in memory and rows; `words` need not be aligned when
// they are read
void rows_from_words(u64 exec, u32* rows, const u32* words, int count);
void words_from_rows(const u32* rows, u32* words, int count);

template <int count, class Address>
SIM_INLINE void load_words(u64 exec, u32* dst, Address address) {
  alignas(64) u32 buffer[kLanes * count];
  if (exec == kAllLanes) {
    const u8* first = address(0);
    bool contiguous = true;
    for (int l = 1; l < kLanes; l++) contiguous &= address(l) == first + (u64)l * 4 * count;
    if (contiguous) {
      rows_from_words(exec, dst, (const u32*)first, count);
      return;
    }
    for (int l = 0; l < kLanes; l++) memcpy(buffer + count * l, address(l), 4 * count);
  } else {
    for (u64 lanes = exec; lanes; lanes &= lanes - 1) {
      const int l = __builtin_ctzll(lanes);
      memcpy(buffer + count * l, address(l), 4 * count);
    }
  }
  rows_from_words(exec, dst, buffer, count);
}

template <int count, class Address>
SIM_INLINE void store_words(u64 exec, const u32* rows, Address address) {
  alignas(64) u32 transposed[kLanes * count];
  const u32* buffer = rows;
  if (count > 1) {
    words_from_rows(rows, transposed, count);
    buffer = transposed;
  }
  if (exec == kAllLanes) {
    u8* first = address(0);
    bool contiguous = true;
    for (int l = 1; l < kLanes; l++) contiguous &= address(l) == first + (u64)l * 4 * count;
    if (contiguous) {
      memcpy(first, buffer, sizeof transposed);
    } else {
      for (int l = 0; l < kLanes; l++) memcpy(address(l), buffer + count * l, 4 * count);
    }
  } else {
    for (u64 lanes = exec; lanes; lanes &= lanes - 1) {
      const int l = __builtin_ctzll(lanes);
      memcpy(address(l), buffer + count * l, 4 * count);
    }
  }
}

SIM_INLINE u32 load_small(Kind kind, const u8* p, u32 old) {
  u16 half;
  switch (kind) {
    case Kind::kU8:
      return *p;
    case Kind::kI8:
      return (u32)(i32)(i8)*p;
    case Kind::kU8Low:
      return (old & 0xffff0000u) | *p;
    case Kind::kU8High:
      return (old & 0xffffu) | ((u32)*p << 16);
    case Kind::kI8Low:
      return (old & 0xffff0000u) | (u16)(i16)(i8)*p;
    case Kind::kI8High:
      return (old & 0xffffu) | ((u32)(u16)(i16)(i8)*p << 16);
    default:
      memcpy(&half, p, 2);
  }
  if (kind == Kind::kU16) return half;
  if (kind == Kind::kI16) return (u32)(i32)(i16)half;
  if (kind == Kind::kLow16) return (old & 0xffff0000u) | half;
  return (old & 0xffffu) | ((u32)half << 16);
}

SIM_INLINE void store_small(Kind kind, u8* p, u32 value) {
  const bool high = kind == Kind::kHigh16 || kind == Kind::kU8High;
  const u32 shifted = high ? value >> 16 : value;
  if (size_of(kind) == 1) {
    *p = (u8)shifted;
  } else {
    const u16 half = (u16)shifted;
    memcpy(p, &half, 2);
  }
}

template <Kind kind, class Address>
SIM_INLINE void load_lanes(u64 exec, u32* dst, Address address) {
  if constexpr (is_words(kind)) {
    load_words<size_of(kind) / 4>(exec, dst, address);
  } else {
    for (u64 lanes = exec; lanes; lanes &= lanes - 1) {
      const int l = __builtin_ctzll(lanes);
      dst[l] = load_small(kind, address(l), dst[l]);
    }
  }
}

template <Kind kind, class Address>
SIM_INLINE void store_lanes(u64 exec, const u32* rows, Address address) {
  if constexpr (is_words(kind)) {
    store_words<size_of(kind) / 4>(exec, rows, address);
  } else {
    for (u64 lanes = exec; lanes; lanes &= lanes - 1) {
      const int l = __builtin_ctzll(lanes);
      store_small(kind, address(l), rows[l]);
    }
  }
}

// What a lane whose access is out of a buffer's range reads.
template <Kind kind>
SIM_INLINE void load_zeros(u64 lanes, u32* dst) {
  if (!lanes) return;
  if constexpr (is_words(kind)) {
    for (u32 i = 0; i < size_of(kind) / 4; i++) {
      for (int c = 0; c < kChunks; c++) store(lanes, dst + kLanes * i, c, U{});
    }
  } else {
    const u16 zero = 0;
    for (; lanes; lanes &= lanes - 1) {
      const int l = __builtin_ctzll(lanes);
      dst[l] = load_small(kind, (const u8*)&zero, dst[l]);
    }
  }
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
