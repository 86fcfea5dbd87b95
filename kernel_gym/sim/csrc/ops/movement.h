// Movement of data between memory and vector rows.
#pragma once

#include "ops/operand.h"
#include "ops/transpose.h"

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

// ---- adjacent lanes
// Whether the words of a row ascend by `step`, without passing the end of 32 bits.
template <u32 step>
SIM_INLINE bool ascending(const u32* row) {
  U wanted;
  for (int i = 0; i < kWidth; i++) wanted[i] = (u32)i * step;
  wanted += row[0];
  U differ = U{};
  for (int c = 0; c < kChunks; c++) {
    differ |= load(row, c) ^ wanted;
    wanted += step * kWidth;
  }
  return !any_lane((U)(differ != 0u)) && row[0] < ~0u - kLanes * step;
}

// The same of each chunk of lanes by itself, apart from passing the end.
template <u32 step>
SIM_INLINE bool ascending_chunks(const u32* row) {
  U steps;
  for (int i = 0; i < kWidth; i++) steps[i] = (u32)i * step;
  U differ = U{};
  for (int c = 0; c < kChunks; c++) differ |= load(row, c) ^ (steps + row[kWidth * c]);
  return !any_lane((U)(differ != 0u));
}
template <u32 step>
SIM_INLINE bool ascending_chunks(const u64* addresses) {
  typedef u64 Wide __attribute__((vector_size(4 * kWidth), may_alias));
  constexpr int kHalf = kWidth / 2;
  Wide steps;
  for (int i = 0; i < kHalf; i++) steps[i] = (u64)i * step;
  Wide differ = Wide{};
  for (int c = 0; c < 2 * kChunks; c++) {
    const u64 first = addresses[c / 2 * kWidth] + (c % 2 ? kHalf * step : 0);
    differ |= *(const Wide*)(addresses + kHalf * c) ^ (steps + first);
  }
  return !any_lane((U)(differ != 0));
}

typedef u16 Halves __attribute__((vector_size(2 * kWidth), aligned(2), may_alias));
typedef u8 Bytes __attribute__((vector_size(kWidth), aligned(1), may_alias));

// Combines a value that was read into the low bits with the old word, by `kind`.
SIM_INLINE U widened(Kind kind, U x, U old) {
  switch (kind) {
    case Kind::kI8:
      return (U)((I)(x << 24) >> 24);
    case Kind::kI16:
      return (U)sext16(x);
    case Kind::kI8Low:
    case Kind::kI8High:
      x = low16((U)((I)(x << 24) >> 24));
      break;
    default:
      break;
  }
  switch (kind) {
    case Kind::kLow16:
    case Kind::kU8Low:
    case Kind::kI8Low:
      return (old & 0xffff0000u) | x;
    case Kind::kHigh16:
    case Kind::kU8High:
    case Kind::kI8High:
      return low16(old) | x << 16;
    default:
      return x;
  }
}

// The lanes of a chunk, from `first` on.
template <Kind kind>
SIM_INLINE void load_chunk_dense(u32* dst, int c, const u8* first) {
  if constexpr (is_words(kind)) {
    constexpr int count = size_of(kind) / 4;
    U rows[count];
    chunk_from_words<count>(rows, (const u32*)first);
    for (int i = 0; i < count; i++) put(dst + kLanes * i, c, rows[i]);
  } else {
    U x;
    if constexpr (size_of(kind) == 2) {
      x = __builtin_convertvector(*(const Halves*)first, U);
    } else {
      x = __builtin_convertvector(*(const Bytes*)first, U);
    }
    put(dst, c, widened(kind, x, load(dst, c)));
  }
}

template <Kind kind>
SIM_INLINE void store_chunk_dense(const u32* rows, int c, u8* first) {
  if constexpr (is_words(kind)) {
    words_from_chunk<size_of(kind) / 4>(rows, c, (u32*)first);
  } else {
    const bool high = kind == Kind::kHigh16 || kind == Kind::kU8High;
    const U x = high ? load(rows, c) >> 16 : load(rows, c);
    if constexpr (size_of(kind) == 2) {
      *(Halves*)first = __builtin_convertvector(x, Halves);
    } else {
      *(Bytes*)first = __builtin_convertvector(x, Bytes);
    }
  }
}

// All lanes, from `first` on.
template <Kind kind>
SIM_INLINE void load_dense(u32* dst, const u8* first) {
  constexpr u32 step = kWidth * size_of(kind);
  for (int c = 0; c < kChunks; c++) load_chunk_dense<kind>(dst, c, first + step * c);
}
template <Kind kind>
SIM_INLINE void store_dense(const u32* rows, u8* first) {
  constexpr u32 step = kWidth * size_of(kind);
  for (int c = 0; c < kChunks; c++) store_chunk_dense<kind>(rows, c, first + step * c);
}

// ---- scattered lanes
// Inactive lanes read from here.
inline constexpr u8 kNothing[16] = {};

#if defined(SIM_AVX512)
SIM_INLINE __m128i words_at(const u8* p) { return _mm_loadu_si128((const __m128i*)p); }
SIM_INLINE i64 pair_at(const u8* p) {
  i64 x;
  memcpy(&x, p, 8);
  return x;
}
SIM_INLINE i32 word_at(const u8* p) {
  i32 x;
  memcpy(&x, p, 4);
  return x;
}

// Collects the words of the sixteen lanes of a chunk in registers. If they were stored one by one,
// the load of the row would wait for all the stores.
template <class Address>
SIM_INLINE U collect_words(int c, Address address) {
  __m128i part[4];
  for (int i = 0; i < 4; i++) {
    const int l = kWidth * c + 4 * i;
    part[i] = _mm_setr_epi32(word_at(address(l)), word_at(address(l + 1)), word_at(address(l + 2)),
                             word_at(address(l + 3)));
  }
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(part[0]), part[1], 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(part[2]), part[3], 1);
  return (U)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

template <int count, class Address>
SIM_INLINE void load_chunk(u64 exec, u32* dst, int c, Address address) {
  const int f = kWidth * c;
  if constexpr (count == 1) {
    store(exec, dst, c, collect_words(c, address));
  } else if constexpr (count == 2) {
    __m512i words[2];
    for (int i = 0; i < 2; i++) {
      const int l = f + 8 * i;
      words[i] = _mm512_setr_epi64(pair_at(address(l)), pair_at(address(l + 1)),
                                   pair_at(address(l + 2)), pair_at(address(l + 3)),
                                   pair_at(address(l + 4)), pair_at(address(l + 5)),
                                   pair_at(address(l + 6)), pair_at(address(l + 7)));
    }
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    store(exec, dst, c, (U)_mm512_permutex2var_epi32(words[0], even, words[1]));
    store(exec, dst + kLanes, c, (U)_mm512_permutex2var_epi32(words[0], odd, words[1]));
  } else {
    __m512i w[4];  // part p of w[j]: the words of lane 4 p + j
    for (int j = 0; j < 4; j++) {
      w[j] = _mm512_castsi128_si512(words_at(address(f + j)));
      w[j] = _mm512_inserti32x4(w[j], words_at(address(f + j + 4)), 1);
      w[j] = _mm512_inserti32x4(w[j], words_at(address(f + j + 8)), 2);
      w[j] = _mm512_inserti32x4(w[j], words_at(address(f + j + 12)), 3);
    }
    const __m512i a = _mm512_unpacklo_epi32(w[0], w[1]), b = _mm512_unpacklo_epi32(w[2], w[3]);
    const __m512i d = _mm512_unpackhi_epi32(w[0], w[1]), e = _mm512_unpackhi_epi32(w[2], w[3]);
    store(exec, dst, c, (U)_mm512_unpacklo_epi64(a, b));
    store(exec, dst + kLanes, c, (U)_mm512_unpackhi_epi64(a, b));
    store(exec, dst + 2 * kLanes, c, (U)_mm512_unpacklo_epi64(d, e));
    store(exec, dst + 3 * kLanes, c, (U)_mm512_unpackhi_epi64(d, e));
  }
}
#endif

template <int count, class Address>
SIM_INLINE void load_words(u64 exec, u32* dst, Address address) {
#if defined(SIM_AVX512)
  if constexpr (count != 3) {
    if (LIKELY(exec == kAllLanes)) {
      for (int c = 0; c < kChunks; c++) load_chunk<count>(exec, dst, c, address);
      return;
    }
    const auto safe = [&](int l) { return exec >> l & 1 ? (const u8*)address(l) : kNothing; };
    for (int c = 0; c < kChunks; c++) load_chunk<count>(exec, dst, c, safe);
    return;
  }
#endif
  alignas(64) u32 buffer[kLanes * count];
  for (u64 lanes = exec; lanes; lanes &= lanes - 1) {
    const int l = __builtin_ctzll(lanes);
    memcpy(buffer + count * l, address(l), 4 * count);
  }
  for (int c = 0; c < kChunks; c++) {
    U rows[count];
    chunk_from_words<count>(rows, buffer + kWidth * count * c);
    for (int i = 0; i < count; i++) store(exec, dst + kLanes * i, c, rows[i]);
  }
}

template <int count, class Address>
SIM_INLINE void store_words(u64 exec, const u32* rows, Address address) {
  alignas(64) u32 transposed[kLanes * count];
  const u32* buffer = rows;
  if (count > 1) {
    for (int c = 0; c < kChunks; c++) {
      words_from_chunk<count>(rows, c, transposed + kWidth * count * c);
    }
    buffer = transposed;
  }
  if (exec == kAllLanes) {
    for (int l = 0; l < kLanes; l++) memcpy(address(l), buffer + count * l, 4 * count);
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

// Loads of scattered lanes: address(l) is a pointer.
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
    if (exec == kAllLanes) {
      for (int l = 0; l < kLanes; l++) store_small(kind, address(l), rows[l]);
      return;
    }
    for (u64 lanes = exec; lanes; lanes &= lanes - 1) {
      const int l = __builtin_ctzll(lanes);
      store_small(kind, address(l), rows[l]);
    }
  }
}

// The value of a lane outside of a buffer's range.
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
