// Vector types for 64-lane registers: a row of 64 words is processed in chunks of kWidth lanes.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__)
#define SIM_AVX512 1
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define SIM_AVX2 1
#endif

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;

#define SIM_INLINE static inline __attribute__((always_inline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

constexpr int kLanes = 64;
#if defined(SIM_AVX512)
constexpr int kWidth = 16;
#elif defined(SIM_AVX2)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
constexpr int kChunks = kLanes / kWidth;
constexpr u64 kAllLanes = ~0ull;

typedef u32 U __attribute__((vector_size(4 * kWidth), may_alias));
typedef i32 I __attribute__((vector_size(4 * kWidth), may_alias));
typedef float F __attribute__((vector_size(4 * kWidth), may_alias));

SIM_INLINE U splat(u32 x) { return U{} + x; }
SIM_INLINE F splatf(float x) { return F{} + x; }
SIM_INLINE U load(const u32* row, int chunk) { return *(const U*)(row + kWidth * chunk); }
SIM_INLINE void put(u32* row, int chunk, U value) { *(U*)(row + kWidth * chunk) = value; }

SIM_INLINE float as_f32(u32 x) {
  float f;
  memcpy(&f, &x, 4);
  return f;
}
SIM_INLINE u32 as_u32(float f) {
  u32 x;
  memcpy(&x, &f, 4);
  return x;
}
SIM_INLINE double as_f64(u64 x) {
  double f;
  memcpy(&f, &x, 8);
  return f;
}
SIM_INLINE u64 as_u64(double f) {
  u64 x;
  memcpy(&x, &f, 8);
  return x;
}

// All-ones words for the lanes of `chunk` whose bit is set in `lanes`.
SIM_INLINE U lane_mask(u64 lanes, int chunk) {
#if defined(SIM_AVX512)
  return (U)_mm512_movm_epi32((__mmask16)(lanes >> (kWidth * chunk)));
#else
  U bits;
  for (int i = 0; i < kWidth; i++) bits[i] = 1u << i;
  return (U)((splat((u32)(lanes >> (kWidth * chunk))) & bits) != 0u);
#endif
}

SIM_INLINE U blend(u64 lanes, int chunk, U yes, U no) {
#if defined(SIM_AVX512)
  const __mmask16 mask = (__mmask16)(lanes >> (kWidth * chunk));
  return (U)_mm512_mask_blend_epi32(mask, (__m512i)no, (__m512i)yes);
#else
  const U mask = lane_mask(lanes, chunk);
  return (yes & mask) | (no & ~mask);
#endif
}

// Lane bits (already shifted into place) of a vector of comparison results.
SIM_INLINE u64 to_bits(I condition, int chunk) {
#if defined(SIM_AVX512)
  return (u64)(u16)_mm512_movepi32_mask((__m512i)condition) << (kWidth * chunk);
#elif defined(SIM_AVX2)
  return (u64)(u8)_mm256_movemask_ps((__m256)condition) << (kWidth * chunk);
#elif defined(__x86_64__)
  return (u64)(_mm_movemask_ps((__m128)condition) & 15) << (kWidth * chunk);
#else
  u64 bits = 0;
  for (int i = 0; i < kWidth; i++) bits |= (u64)(condition[i] & 1) << i;
  return bits << (kWidth * chunk);
#endif
}

// The top bits of the words, as to_bits().
SIM_INLINE u64 sign_bits(U x, int chunk) {
#if defined(__x86_64__)
  return to_bits((I)x, chunk);
#else
  return to_bits((I)x < 0, chunk);
#endif
}

// Write `value` to the lanes of `row` that are active in `exec`.
SIM_INLINE void store(u64 exec, u32* row, int chunk, U value) {
  if (LIKELY(exec == kAllLanes)) {
    put(row, chunk, value);
  } else {
    put(row, chunk, blend(exec, chunk, value, load(row, chunk)));
  }
}

SIM_INLINE void store_row(u64 exec, u32* row, const u32* values) {
  for (int c = 0; c < kChunks; c++) store(exec, row, c, load(values, c));
}

SIM_INLINE F fma_lanes(F a, F b, F c) {
#if defined(SIM_AVX512)
  return (F)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(SIM_AVX2)
  return (F)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  F r;
  for (int i = 0; i < kWidth; i++) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}

// Round to nearest even.
SIM_INLINE F round_lanes(F a) {
#if defined(SIM_AVX512)
  return (F)_mm512_roundscale_ps((__m512)a, 8);
#elif defined(SIM_AVX2)
  return (F)_mm256_round_ps((__m256)a, 8);
#else
  F r;
  for (int i = 0; i < kWidth; i++) r[i] = __builtin_rintf(a[i]);
  return r;
#endif
}

SIM_INLINE F sqrt_lanes(F a) {
#if defined(SIM_AVX512)
  return (F)_mm512_sqrt_ps((__m512)a);
#elif defined(SIM_AVX2)
  return (F)_mm256_sqrt_ps((__m256)a);
#else
  F r;
  for (int i = 0; i < kWidth; i++) r[i] = __builtin_sqrtf(a[i]);
  return r;
#endif
}

// IEEE maxNum/minNum: a quiet NaN loses against a number. -0 is less than +0: of equal values,
// which differ in the sign of zero at most, the common bits are the maximum.
SIM_INLINE F max_lanes(F a, F b) {
  const U equal = (U)(a == b);
  const F other = ((a > b) | (b != b)) ? a : b;
  return (F)((U)other & ((U)a | ~equal));
}
SIM_INLINE F min_lanes(F a, F b) {
  const U equal = (U)(a == b);
  const F other = ((a < b) | (b != b)) ? a : b;
  return (F)((U)other | ((U)a & equal));
}

// Lanes that are NaN, and signalling ones: these win in IEEE mode, made quiet.
SIM_INLINE U signaling(U x) { return (U)((F)x != (F)x) & (U)((x & 0x400000u) == 0u); }
SIM_INLINE U signaling_half(U x) { return (U)((x & 0x7fffu) > 0x7c00u) & (U)((x & 0x200u) == 0u); }
SIM_INLINE U quieted(U result, U a, U b, U a_signals, U b_signals, u32 quiet) {
  const U either = (b & b_signals) | (result & ~b_signals);
  const U chosen = (a & a_signals) | (either & ~a_signals);
  return chosen | ((a_signals | b_signals) & quiet);
}
// Whether a vector of comparison results has a true one.
SIM_INLINE bool any_lane(U condition) { return to_bits((I)condition, 0) != 0; }
SIM_INLINE F max_ieee(F a, F b) {
#if defined(SIM_AVX512)
  return (F)_mm512_range_ps((__m512)a, (__m512)b,
                            5);  // of numbers and NaN as above, signs compared
#endif
  const F result = max_lanes(a, b);
  if (LIKELY(!any_lane((U)((a != a) | (b != b))))) return result;
  return (F)quieted((U)result, (U)a, (U)b, signaling((U)a), signaling((U)b), 0x400000u);
}
SIM_INLINE F min_ieee(F a, F b) {
#if defined(SIM_AVX512)
  return (F)_mm512_range_ps((__m512)a, (__m512)b, 4);
#endif
  const F result = min_lanes(a, b);
  if (LIKELY(!any_lane((U)((a != a) | (b != b))))) return result;
  return (F)quieted((U)result, (U)a, (U)b, signaling((U)a), signaling((U)b), 0x400000u);
}

SIM_INLINE float half_to_float(u32 h) {
  const u16 bits = (u16)h;
#if defined(SIM_AVX512) || defined(SIM_AVX2)
  return _cvtsh_ss(bits);
#else
  _Float16 f;
  memcpy(&f, &bits, 2);
  return (float)f;
#endif
}

SIM_INLINE u32 float_to_half(float x) {
#if defined(SIM_AVX512) || defined(SIM_AVX2)
  return _cvtss_sh(x, 4);
#else
  const _Float16 f = (_Float16)x;
  u16 bits;
  memcpy(&bits, &f, 2);
  return bits;
#endif
}

// The low half of each word as f16, widened.
SIM_INLINE F half_lanes(U x) {
#if defined(SIM_AVX512)
  return (F)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)x));
#elif defined(SIM_AVX2)
  const __m256i low = (__m256i)(x & 0xffffu);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x88);
  return (F)_mm256_cvtph_ps(_mm256_castsi256_si128(packed));
#else
  F r;
  for (int i = 0; i < kWidth; i++) r[i] = half_to_float(x[i]);
  return r;
#endif
}

// f32 rounded to f16 by the current mode (mode.cpp), in the low half of each word.
SIM_INLINE U to_half(F x) {
#if defined(SIM_AVX512)
  return (U)_mm512_cvtepu16_epi32(_mm512_cvtps_ph((__m512)x, 4));
#elif defined(SIM_AVX2)
  return (U)_mm256_cvtepu16_epi32(_mm256_cvtps_ph((__m256)x, 4));
#else
  U r;
  for (int i = 0; i < kWidth; i++) r[i] = float_to_half(x[i]);
  return r;
#endif
}

// f16 in the low halves; the high halves of the results are zero.
SIM_INLINE U max_half(U a, U b) {
  const U x = a & 0xffffu, y = b & 0xffffu;
  const U result = to_half(max_lanes(half_lanes(x), half_lanes(y)));
  return quieted(result, x, y, signaling_half(x), signaling_half(y), 0x200u);
}
SIM_INLINE U min_half(U a, U b) {
  const U x = a & 0xffffu, y = b & 0xffffu;
  const U result = to_half(min_lanes(half_lanes(x), half_lanes(y)));
  return quieted(result, x, y, signaling_half(x), signaling_half(y), 0x200u);
}

// The upper halves of the 64-bit products.
SIM_INLINE U mul_hi_lanes(U a, U b) {
#if defined(SIM_AVX512)
  const __m512i even = _mm512_mul_epu32((__m512i)a, (__m512i)b);
  const __m512i odd =
      _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32), _mm512_srli_epi64((__m512i)b, 32));
  return (U)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
#elif defined(SIM_AVX2)
  const __m256i even = _mm256_mul_epu32((__m256i)a, (__m256i)b);
  const __m256i odd =
      _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), _mm256_srli_epi64((__m256i)b, 32));
  return (U)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
#else
  U r;
  for (int i = 0; i < kWidth; i++) r[i] = (u32)(((u64)a[i] * b[i]) >> 32);
  return r;
#endif
}

// Low 16 bits of each word, sign-extended.
SIM_INLINE I sext16(U x) { return ((I)(x << 16)) >> 16; }
SIM_INLINE U low16(U x) { return x & 0xffffu; }
SIM_INLINE U pack16(U low, U high) { return (low & 0xffffu) | (high << 16); }
SIM_INLINE U select(I condition, U yes, U no) { return condition ? yes : no; }

// x * 2^n with one rounding.
SIM_INLINE F ldexp_lanes(F x, I n) {
#if defined(SIM_AVX512)
  return (F)_mm512_scalef_ps((__m512)x, (__m512) __builtin_convertvector(n, F));
#else
  F r;
  for (int i = 0; i < kWidth; i++) {  // exact in double
    const i64 power = n[i] < -400 ? -400 : n[i] > 400 ? 400 : n[i];
    r[i] = (float)((double)x[i] * as_f64((u64)(1023 + power) << 52));
  }
  return r;
#endif
}

// 1 / x as the hardware does it: denormals are zeros of the same sign.
SIM_INLINE F flush_lanes(F a) {
  return (F)((U)a & select((I)(((U)a & 0x7f800000u) == 0u), splat(0x80000000u), ~U{}));
}
SIM_INLINE F reciprocal_lanes(F a) { return flush_lanes(1.f / flush_lanes(a)); }

// 2^x as the hardware does it: denormal inputs and results are flushed.
SIM_INLINE F exp2_polynomial(F part) {
  F p = splatf(1.5353362e-4f);
  p = fma_lanes(p, part, splatf(1.3398874e-3f));
  p = fma_lanes(p, part, splatf(9.6184370e-3f));
  p = fma_lanes(p, part, splatf(5.5503324e-2f));
  p = fma_lanes(p, part, splatf(2.4022648e-1f));
  p = fma_lanes(p, part, splatf(6.9314720e-1f));
  return fma_lanes(p, part, splatf(1.f));
}
#if defined(SIM_AVX512)
// The limits return the second operand for NaN, and the scaling overflows at 2^128, so that no
// further tests are needed as in the other form.
SIM_INLINE F exp2_lanes(F x) {
  const __m512 v = (__m512)x;
  const __m512 above = _mm512_max_ps(_mm512_set1_ps(-127.f), v);
  const F clamped = (F)_mm512_min_ps(_mm512_set1_ps(128.f), above);
  const F whole = round_lanes(clamped);
  const F p = exp2_polynomial(clamped - whole);
  const __mmask16 large = _mm512_cmp_ps_mask(v, _mm512_set1_ps(-126.f), _CMP_NLT_UQ);
  const __m512 r = _mm512_maskz_scalef_ps(large, (__m512)p, (__m512)whole);
  return (F)_mm512_mask_mov_ps(r, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), v);
}
#else
SIM_INLINE F exp2_lanes(F x) {
  F clamped = x;
  clamped = (clamped < -127.f) ? splatf(-127.f) : clamped;
  clamped = (clamped > 128.f) ? splatf(128.f) : clamped;
  const F whole = round_lanes(clamped);
  const F p = exp2_polynomial(clamped - whole);
  const I exponent = __builtin_convertvector(whole, I);
  const I half = exponent >> 1;
  const I rest = exponent - half;
  F r = p * (F)((half + 127) << 23) * (F)((rest + 127) << 23);
  r = (x < -126.f) ? F{} : r;
  r = (x >= 128.f) ? (F)splat(0x7f800000u) : r;
  return (x != x) ? x : r;
}
#endif
