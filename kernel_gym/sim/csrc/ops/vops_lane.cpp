// Vector operations computed lane by lane: transcendental functions, conversions, bit counting,
// division helpers and dot products of bytes.
#include <algorithm>

#include "ops/scalar_math.h"
#include "ops/sources.h"

namespace {

// LANE_UNARY(name, expression of `x` (bits) and `f` (the same as f32)); the value is u32.
#define LANE_UNARY(name, expression)                             \
  const Inst* name(Wave& wave, const Inst* inst) {               \
    Row ra, result;                                              \
    const u32* a = source(wave, inst->src[0], ra);               \
    for (int l = 0; l < kLanes; l++) {                           \
      const u32 x = a[l];                                        \
      const float f = as_f32(x);                                 \
      (void)f;                                                   \
      result.words[l] = (u32)(expression);                       \
    }                                                            \
    store_row(wave.exec(), wave.regs + inst->dst, result.words); \
    return inst + 1;                                             \
  }                                                              \
  REGISTER(name, name, 1)

#define LANE_BINARY(name, expression)                            \
  const Inst* name(Wave& wave, const Inst* inst) {               \
    Row ra, rb, result;                                          \
    const u32* a = source(wave, inst->src[0], ra);               \
    const u32* b = source(wave, inst->src[1], rb);               \
    for (int l = 0; l < kLanes; l++) {                           \
      const u32 x = a[l], y = b[l];                              \
      const float f = as_f32(x), g = as_f32(y);                  \
      (void)f, (void)g;                                          \
      result.words[l] = (u32)(expression);                       \
    }                                                            \
    store_row(wave.exec(), wave.regs + inst->dst, result.words); \
    return inst + 1;                                             \
  }                                                              \
  REGISTER(name, name, 2)

#define LANE_TERNARY(name, expression)                           \
  const Inst* name(Wave& wave, const Inst* inst) {               \
    Row ra, rb, rc, result;                                      \
    const u32* a = source(wave, inst->src[0], ra);               \
    const u32* b = source(wave, inst->src[1], rb);               \
    const u32* c = source(wave, inst->src[2], rc);               \
    for (int l = 0; l < kLanes; l++) {                           \
      const u32 x = a[l], y = b[l], z = c[l];                    \
      result.words[l] = (u32)(expression);                       \
    }                                                            \
    store_row(wave.exec(), wave.regs + inst->dst, result.words); \
    return inst + 1;                                             \
  }                                                              \
  REGISTER(name, name, 3)

// The smaller value. NaN is kept.
SIM_INLINE float below(float x, float limit) { return x > limit ? limit : x; }

// ---- f32
LANE_UNARY(v_log_f32, as_u32(flush(math::log2(flush(f)))));
LANE_UNARY(v_rsq_f32, as_u32((float)(1.0 / std::sqrt((double)flush(f)))));
LANE_UNARY(v_sin_f32, as_u32(math::sin_turns(f)));
LANE_UNARY(v_cos_f32, as_u32(math::cos_turns(f)));
LANE_UNARY(v_floor_f32, as_u32(std::floor(f)));
LANE_UNARY(v_ceil_f32, as_u32(std::ceil(f)));
LANE_UNARY(v_trunc_f32, as_u32(std::trunc(f)));
LANE_UNARY(v_fract_f32, as_u32(below(f - std::floor(f), 0x1.fffffep-1f)));
LANE_UNARY(v_cvt_i32_f32, to_i32(f));
LANE_UNARY(v_cvt_u32_f32, to_u32(f));
LANE_UNARY(v_cvt_rpi_i32_f32, to_i32(std::floor(f + 0.5f)));
LANE_UNARY(v_cvt_flr_i32_f32, to_i32(std::floor(f)));
LANE_UNARY(v_cvt_off_f32_i4, as_u32(((i32)(x << 28) >> 28) * 0.0625f));
LANE_UNARY(v_frexp_mant_f32, as_u32(math::mantissa(f)));
LANE_UNARY(v_frexp_exp_i32_f32, math::exponent(f));

// ---- bits
SIM_INLINE u32 reverse_bits(u32 x) {
  x = (x >> 16) | (x << 16);
  x = ((x >> 8) & 0x00ff00ffu) | ((x & 0x00ff00ffu) << 8);
  x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  return ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
}
LANE_UNARY(v_bfrev_b32, reverse_bits(x));
LANE_UNARY(v_ffbh_u32, x ? __builtin_clz(x) : 0xffffffffu);
LANE_UNARY(v_ffbl_b32, x ? __builtin_ctz(x) : 0xffffffffu);
LANE_UNARY(v_ffbh_i32, (x == 0 || x == ~0u) ? ~0u : (u32)__builtin_clz((i32)x < 0 ? ~x : x));
LANE_BINARY(v_bcnt_u32_b32, __builtin_popcount(x) + y);
LANE_BINARY(v_mbcnt_lo_u32_b32, __builtin_popcount(x&(l >= 32 ? ~0u : (1u << l) - 1)) + y);
LANE_BINARY(v_mbcnt_hi_u32_b32, __builtin_popcount(x&(l <= 32 ? 0u : (1u << (l - 32)) - 1)) + y);
LANE_BINARY(v_mul_hi_i32, ((i64)(i32)x * (i32)y) >> 32);
LANE_BINARY(v_mul_hi_u32_u24, ((u64)(x & 0xffffff) * (y & 0xffffff)) >> 32);
LANE_BINARY(v_mul_hi_i32_i24, ((i64)((i32)(x << 8) >> 8) * ((i32)(y << 8) >> 8)) >> 32);

// v_add_i32 / v_sub_i32 with clamp saturate.
SIM_INLINE u32 saturate(i64 x) {
  return (u32)(i32)std::max<i64>(INT32_MIN, std::min<i64>(INT32_MAX, x));
}
LANE_BINARY(v_add_i32, x + y);
LANE_BINARY(v_sub_i32, x - y);
LANE_BINARY(v_add_i32_clamp, saturate((i64)(i32)x + (i32)y));
LANE_BINARY(v_sub_i32_clamp, saturate((i64)(i32)x - (i32)y));

// ---- f16
SIM_INLINE float h(u32 x) { return half_to_float(x); }
LANE_UNARY(v_rcp_f16, float_to_half(1.f / h(x)));
LANE_UNARY(v_sqrt_f16, float_to_half(std::sqrt(h(x))));
LANE_UNARY(v_rsq_f16, float_to_half(1.f / std::sqrt(h(x))));
LANE_UNARY(v_exp_f16, float_to_half(math::exp2(h(x))));
LANE_UNARY(v_log_f16, float_to_half(math::log2(h(x))));
LANE_UNARY(v_sin_f16, float_to_half(math::sin_turns(h(x))));
LANE_UNARY(v_cos_f16, float_to_half(math::cos_turns(h(x))));
LANE_UNARY(v_floor_f16, float_to_half(std::floor(h(x))));
LANE_UNARY(v_ceil_f16, float_to_half(std::ceil(h(x))));
LANE_UNARY(v_trunc_f16, float_to_half(std::trunc(h(x))));
LANE_UNARY(v_rndne_f16, float_to_half(std::nearbyint(h(x))));
LANE_UNARY(v_fract_f16, float_to_half(below(h(x) - std::floor(h(x)), 0x1.ffcp-1f)));
LANE_UNARY(v_frexp_mant_f16, float_to_half(math::mantissa(h(x))));
LANE_UNARY(v_frexp_exp_i16_f16, (u16)(i16)math::exponent(h(x)));
LANE_UNARY(v_cvt_u16_f16, std::min(65535u, to_u32(h(x))));
LANE_UNARY(v_cvt_i16_f16, (u16)std::max(-32768, std::min(32767, (i32)to_i32(h(x)))));
LANE_UNARY(v_cvt_f16_u16, float_to_half((float)(u16)x));
LANE_UNARY(v_cvt_f16_i16, float_to_half((float)(i16)x));
LANE_BINARY(v_ldexp_f16, float_to_half(std::ldexp(h(x), (i16)y)));

// f32 to f16, rounded towards zero.
SIM_INLINE u32 half_toward_zero(float f) {
  const u32 nearest = float_to_half(f);
  const float back = half_to_float(nearest);
  if (std::isinf(back) && !std::isinf(f)) return (nearest & 0x8000) | 0x7bff;
  return std::fabs(back) > std::fabs(f) ? nearest - 1 : nearest;
}
// Like the C conversion of a float in [-1, 1] (or [0, 1]) to a normalised integer.
SIM_INLINE u32 snorm16(float f) {
  return (u16)(i16)std::nearbyint(std::fmax(-1.f, std::fmin(1.f, f)) * 32767.f);
}
SIM_INLINE u32 unorm16(float f) {
  return (u16)std::nearbyint(std::fmax(0.f, std::fmin(1.f, f)) * 65535.f);
}
LANE_BINARY(v_cvt_pkrtz_f16_f32, half_toward_zero(f) | (half_toward_zero(g) << 16));
LANE_BINARY(v_cvt_pknorm_i16_f32, snorm16(f) | (snorm16(g) << 16));
LANE_BINARY(v_cvt_pknorm_u16_f32, unorm16(f) | (unorm16(g) << 16));
LANE_BINARY(v_cvt_pknorm_i16_f16, snorm16(h(x)) | (snorm16(h(y)) << 16));
LANE_BINARY(v_cvt_pknorm_u16_f16, unorm16(h(x)) | (unorm16(h(y)) << 16));

SIM_INLINE u32 insert_byte(float f, u32 position, u32 into) {
  const u32 shift = 8 * (position & 3);
  const u32 byte = std::min(255u, to_u32(std::nearbyint(f)));
  return (into & ~(0xffu << shift)) | (byte << shift);
}
LANE_TERNARY(v_cvt_pk_u8_f32, insert_byte(as_f32(x), y, z));

// ---- integer dot products and sums of absolute differences
template <int bits, bool is_signed>
SIM_INLINE u32 dot(u32 x, u32 y, u32 sum) {
  for (int i = 0; i < 32; i += bits) {
    const u32 top = 32 - bits;
    if (is_signed) {
      sum += (u32)(((i32)(x << (top - i)) >> top) * ((i32)(y << (top - i)) >> top));
    } else {
      sum += (x << (top - i) >> top) * (y << (top - i) >> top);
    }
  }
  return sum;
}
LANE_TERNARY(v_dot2_i32_i16, (dot<16, true>(x, y, z)));
LANE_TERNARY(v_dot2_u32_u16, (dot<16, false>(x, y, z)));
LANE_TERNARY(v_dot4_i32_i8, (dot<8, true>(x, y, z)));
LANE_TERNARY(v_dot4_u32_u8, (dot<8, false>(x, y, z)));
LANE_TERNARY(v_dot8_i32_i4, (dot<4, true>(x, y, z)));
LANE_TERNARY(v_dot8_u32_u4, (dot<4, false>(x, y, z)));

template <int bits>
SIM_INLINE u32 absolute_differences(u32 x, u32 y) {
  u32 sum = 0;
  for (int i = 0; i < 32; i += bits) {
    const u32 p = x >> i & ((1u << bits) - 1), q = y >> i & ((1u << bits) - 1);
    sum += p > q ? p - q : q - p;
  }
  return sum;
}
LANE_TERNARY(v_sad_u8, absolute_differences<8>(x, y) + z);
LANE_TERNARY(v_sad_u16, absolute_differences<16>(x, y) + z);
LANE_TERNARY(v_sad_hi_u8, (absolute_differences<8>(x, y) << 16) + z);

SIM_INLINE u32 average_bytes(u32 x, u32 y, u32 round) {
  u32 result = 0;
  for (int i = 0; i < 32; i += 8) {
    result |= (((x >> i & 255) + (y >> i & 255) + (round >> i & 1)) >> 1) << i;
  }
  return result;
}
LANE_TERNARY(v_lerp_u8, average_bytes(x, y, z));

// ---- f16 division
SIM_INLINE u32 fix_half_division(u32 quotient, u32 denominator, u32 numerator) {
  const float d = h(denominator), n = h(numerator);
  const u32 sign = (denominator ^ numerator) & 0x8000u;
  if (n != n) return (numerator & 0xffff) | 0x200u;
  if (d != d) return (denominator & 0xffff) | 0x200u;
  if ((d == 0 && n == 0) || (std::isinf(d) && std::isinf(n))) return 0xfe00u;
  if (d == 0 || std::isinf(n)) return sign | 0x7c00u;
  if (std::isinf(d) || n == 0) return sign;
  return sign | (quotient & 0x7fffu);
}
LANE_TERNARY(v_div_fixup_f16, fix_half_division(x, y, z));

}  // namespace
