// 64-bit vector operations: f64, u64, i64. A value occupies two rows (low, high).
#include <algorithm>

#include "ops/scalar_math.h"
#include "ops/sources.h"

namespace {

SIM_INLINE void store64(u64 exec, u32* dst, const u64* values) {
  Row low, high;
  for (int l = 0; l < kLanes; l++) {
    low.words[l] = (u32)values[l];
    high.words[l] = (u32)(values[l] >> 32);
  }
  store_row(exec, dst, low.words);
  store_row(exec, dst + kLanes, high.words);
}

// WIDE_UNARY(name, expression of `x` (bits) and `f` (the same as f64)); the value is u64.
#define WIDE_UNARY(name, expression)                     \
  const Inst* name(Wave& wave, const Inst* inst) {       \
    RowPair ra;                                          \
    alignas(64) u64 result[kLanes];                      \
    const u32* a = source64(wave, inst->src[0], ra);     \
    for (int l = 0; l < kLanes; l++) {                   \
      const u64 x = pair(a, l);                          \
      const double f = as_f64(x);                        \
      (void)f;                                           \
      result[l] = (u64)(expression);                     \
    }                                                    \
    store64(wave.exec(), wave.regs + inst->dst, result); \
    return inst + 1;                                     \
  }                                                      \
  REGISTER(name, name, 1)

#define WIDE_BINARY(name, expression)                              \
  const Inst* name(Wave& wave, const Inst* inst) {                 \
    RowPair ra, rb;                                                \
    alignas(64) u64 result[kLanes];                                \
    const u32* a = source64(wave, inst->src[0], ra);               \
    const u32* b = source64(wave, inst->src[1], rb);               \
    for (int l = 0; l < kLanes; l++) {                             \
      const double f = as_f64(pair(a, l)), g = as_f64(pair(b, l)); \
      result[l] = (u64)(expression);                               \
    }                                                              \
    store64(wave.exec(), wave.regs + inst->dst, result);           \
    return inst + 1;                                               \
  }                                                                \
  REGISTER(name, name, 2)

WIDE_UNARY(v_mov_b64, x);
WIDE_UNARY(v_rcp_f64, as_u64(1.0 / f));
WIDE_UNARY(v_rsq_f64, as_u64(1.0 / std::sqrt(f)));
WIDE_UNARY(v_sqrt_f64, as_u64(std::sqrt(f)));
WIDE_UNARY(v_floor_f64, as_u64(std::floor(f)));
WIDE_UNARY(v_ceil_f64, as_u64(std::ceil(f)));
WIDE_UNARY(v_trunc_f64, as_u64(std::trunc(f)));
WIDE_UNARY(v_rndne_f64, as_u64(std::nearbyint(f)));
SIM_INLINE double fraction64(double x) {
  const double part = x - std::floor(x);
  return part > 0x1.fffffffffffffp-1 ? 0x1.fffffffffffffp-1 : part;
}
WIDE_UNARY(v_fract_f64, as_u64(fraction64(f)));

SIM_INLINE double mantissa64(double x) {
  int e;
  return std::fabs(x) < INFINITY ? std::frexp(x, &e) : x;
}
SIM_INLINE int exponent64(double x) {
  int e = 0;
  if (std::fabs(x) < INFINITY && x != 0) std::frexp(x, &e);
  return e;
}
WIDE_UNARY(v_frexp_mant_f64, as_u64(mantissa64(f)));
WIDE_BINARY(v_add_f64, as_u64(f + g));
WIDE_BINARY(v_mul_f64, as_u64(f* g));
// -0 is less than +0, which fmax and fmin leave open; a signalling NaN wins, made quiet.
SIM_INLINE bool signals64(double x) { return x != x && !(as_u64(x) >> 51 & 1); }
template <bool max>
SIM_INLINE u64 extremum64(double x, double y) {
  if (signals64(x)) return as_u64(x) | 1ull << 51;
  if (signals64(y)) return as_u64(y) | 1ull << 51;
  if (x != x) return as_u64(y);
  if (y != y) return as_u64(x);
  if (x == y) return max ? as_u64(x) & as_u64(y) : as_u64(x) | as_u64(y);
  return as_u64((x > y) == max ? x : y);
}
WIDE_BINARY(v_max_f64, extremum64<true>(f, g));
WIDE_BINARY(v_min_f64, extremum64<false>(f, g));

const Inst* v_ldexp_f64(Wave& wave, const Inst* inst) {
  RowPair ra;
  Row rb;
  alignas(64) u64 result[kLanes];
  const u32* a = source64(wave, inst->src[0], ra);
  const u32* power = source(wave, inst->src[1], rb);
  for (int l = 0; l < kLanes; l++) {
    result[l] = as_u64(std::ldexp(as_f64(pair(a, l)), (i32)power[l]));
  }
  store64(wave.exec(), wave.regs + inst->dst, result);
  return inst + 1;
}
REGISTER(v_ldexp_f64, v_ldexp_f64, 2);

// ---- conversions. FROM_32(name, expression of `x`, `f`): u64; TO_32(name, expression of `f`): u32
#define FROM_32(name, expression)                        \
  const Inst* name(Wave& wave, const Inst* inst) {       \
    Row ra;                                              \
    alignas(64) u64 result[kLanes];                      \
    const u32* a = source(wave, inst->src[0], ra);       \
    for (int l = 0; l < kLanes; l++) {                   \
      const u32 x = a[l];                                \
      const float f = as_f32(x);                         \
      (void)f;                                           \
      result[l] = as_u64((double)(expression));          \
    }                                                    \
    store64(wave.exec(), wave.regs + inst->dst, result); \
    return inst + 1;                                     \
  }                                                      \
  REGISTER(name, name, 1)

#define TO_32(name, expression)                                  \
  const Inst* name(Wave& wave, const Inst* inst) {               \
    RowPair ra;                                                  \
    Row result;                                                  \
    const u32* a = source64(wave, inst->src[0], ra);             \
    for (int l = 0; l < kLanes; l++) {                           \
      const double f = as_f64(pair(a, l));                       \
      result.words[l] = (u32)(expression);                       \
    }                                                            \
    store_row(wave.exec(), wave.regs + inst->dst, result.words); \
    return inst + 1;                                             \
  }                                                              \
  REGISTER(name, name, 1)

FROM_32(v_cvt_f64_f32, f);
FROM_32(v_cvt_f64_i32, (i32)x);
FROM_32(v_cvt_f64_u32, x);

SIM_INLINE u32 wide_to_i32(double x) {
  if (x != x) return 0;
  if (x >= 2147483647.0) return 0x7fffffffu;
  if (x <= -2147483648.0) return 0x80000000u;
  return (u32)(i32)x;
}
SIM_INLINE u32 wide_to_u32(double x) {
  if (!(x > 0)) return 0;
  return x >= 4294967295.0 ? 0xffffffffu : (u32)x;
}
TO_32(v_cvt_f32_f64, as_u32((float)f));
TO_32(v_cvt_i32_f64, wide_to_i32(f));
TO_32(v_cvt_u32_f64, wide_to_u32(f));
TO_32(v_frexp_exp_i32_f64, exponent64(f));

// ---- three sources
const Inst* v_fma_f64(Wave& wave, const Inst* inst) {
  RowPair ra, rb, rc;
  alignas(64) u64 result[kLanes];
  const u32* a = source64(wave, inst->src[0], ra);
  const u32* b = source64(wave, inst->src[1], rb);
  const u32* c = source64(wave, inst->src[2], rc);
  for (int l = 0; l < kLanes; l++) {
    const double product_sum = std::fma(as_f64(pair(a, l)), as_f64(pair(b, l)), as_f64(pair(c, l)));
    result[l] = as_u64(product_sum);
  }
  store64(wave.exec(), wave.regs + inst->dst, result);
  return inst + 1;
}
REGISTER(v_fma_f64, v_fma_f64, 3);

// ---- f64 division
SIM_INLINE int exponent_bits(double f) { return (int)((as_u64(f) >> 52) & 2047); }
SIM_INLINE bool is_denormal(double f) {
  return !(as_u64(f) & 0x7ff0000000000000ull) && (as_u64(f) & 0xfffffffffffffull);
}

struct Scaled {
  double value;
  bool flag;
};

Scaled scale_division(double value, double denominator, double numerator) {
  if (numerator == 0 || denominator == 0) return {NAN, false};
  const double up = std::ldexp(value, 128);
  const bool of_denominator = value == denominator;
  const bool of_numerator = value == numerator;
  if (exponent_bits(numerator) - exponent_bits(denominator) >= 768) {
    return {of_denominator ? up : value, true};
  }
  if (is_denormal(denominator)) return {up, false};
  const bool quotient_denormal = is_denormal(numerator / denominator);
  const bool reciprocal_denormal = is_denormal(1.0 / denominator);
  if (reciprocal_denormal && quotient_denormal) return {of_denominator ? up : value, true};
  if (reciprocal_denormal) return {std::ldexp(value, -128), false};
  if (quotient_denormal) return {of_numerator ? up : value, true};
  if (exponent_bits(numerator) <= 53) return {up, false};
  return {value, false};
}

const Inst* v_div_scale_f64(Wave& wave, const Inst* inst) {
  RowPair ra, rb, rc;
  alignas(64) u64 result[kLanes];
  const u32* value = source64(wave, inst->src[0], ra);
  const u32* denominator = source64(wave, inst->src[1], rb);
  const u32* numerator = source64(wave, inst->src[2], rc);
  u64 flags = 0;
  for (int l = 0; l < kLanes; l++) {
    const Scaled scaled = scale_division(as_f64(pair(value, l)), as_f64(pair(denominator, l)),
                                         as_f64(pair(numerator, l)));
    result[l] = as_u64(scaled.value);
    flags |= (u64)scaled.flag << l;
  }
  store64(wave.exec(), wave.regs + inst->dst, result);
  write64(wave.scalars, inst->dst2, flags & wave.exec());
  return inst + 1;
}
REGISTER(v_div_scale_f64, v_div_scale_f64, 3);

const Inst* v_div_fmas_f64(Wave& wave, const Inst* inst) {
  RowPair ra, rb, rc;
  alignas(64) u64 result[kLanes];
  const u32* a = source64(wave, inst->src[0], ra);
  const u32* b = source64(wave, inst->src[1], rb);
  const u32* c = source64(wave, inst->src[2], rc);
  const u64 scaled = read64(wave.scalars, kVcc);
  for (int l = 0; l < kLanes; l++) {
    const double addend = as_f64(pair(c, l));
    double value = std::fma(as_f64(pair(a, l)), as_f64(pair(b, l)), addend);
    if (scaled >> l & 1) value = std::ldexp(value, exponent_bits(addend) > 1023 ? 128 : -128);
    result[l] = as_u64(value);
  }
  store64(wave.exec(), wave.regs + inst->dst, result);
  return inst + 1;
}
REGISTER(v_div_fmas_f64, v_div_fmas_f64, 3);

SIM_INLINE u64 fix_division(u64 quotient, u64 denominator, u64 numerator) {
  const double d = as_f64(denominator), n = as_f64(numerator);
  const u64 sign = (denominator ^ numerator) & (1ull << 63);
  if (n != n) return numerator | (1ull << 51);
  if (d != d) return denominator | (1ull << 51);
  if ((d == 0 && n == 0) || (std::isinf(d) && std::isinf(n))) return 0xfff8000000000000ull;
  if (d == 0 || std::isinf(n)) return sign | 0x7ff0000000000000ull;
  if (std::isinf(d) || n == 0) return sign;
  return sign | (quotient & ~(1ull << 63));
}

const Inst* v_div_fixup_f64(Wave& wave, const Inst* inst) {
  RowPair ra, rb, rc;
  alignas(64) u64 result[kLanes];
  const u32* quotient = source64(wave, inst->src[0], ra);
  const u32* denominator = source64(wave, inst->src[1], rb);
  const u32* numerator = source64(wave, inst->src[2], rc);
  for (int l = 0; l < kLanes; l++) {
    result[l] = fix_division(pair(quotient, l), pair(denominator, l), pair(numerator, l));
  }
  store64(wave.exec(), wave.regs + inst->dst, result);
  return inst + 1;
}
REGISTER(v_div_fixup_f64, v_div_fixup_f64, 3);

// ---- argument reduction of sin and cos: 53 bits of 2/pi, chosen by the exponent
constexpr u64 kTwoOverPi[20] = {
    0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
    0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull,
    0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full,
    0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull,
    0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull, 0xf0cfbc209af4361dull};

double two_over_pi_bits(double x, u32 segment) {
  const u32 exponent = exponent_bits(x);
  u32 shift = (segment & 31) * 53;
  if (exponent > 1077) shift += exponent - 1077;
  u64 bits = 0;
  for (u32 k = shift; k < shift + 53; k++) {
    const u64 bit = k < 1280 ? (kTwoOverPi[k >> 6] >> (63 - (k & 63))) & 1 : 0;
    bits = (bits << 1) | bit;
  }
  return std::ldexp((double)bits, -53 - (int)shift + (exponent >= 1968 ? 128 : 0));
}

const Inst* v_trig_preop_f64(Wave& wave, const Inst* inst) {
  RowPair ra;
  Row rb;
  alignas(64) u64 result[kLanes];
  const u32* a = source64(wave, inst->src[0], ra);
  const u32* segment = source(wave, inst->src[1], rb);
  for (int l = 0; l < kLanes; l++) {
    result[l] = as_u64(two_over_pi_bits(as_f64(pair(a, l)), segment[l]));
  }
  store64(wave.exec(), wave.regs + inst->dst, result);
  return inst + 1;
}
REGISTER(v_trig_preop_f64, v_trig_preop_f64, 2);

}  // namespace
