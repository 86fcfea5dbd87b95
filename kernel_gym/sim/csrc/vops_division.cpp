// f32 division as compilers expand it: v_div_scale, a Newton iteration, v_div_fmas, v_div_fixup.
#include "scalar_math.h"
#include "sources.h"

namespace {

SIM_INLINE int exponent_bits(u32 x) { return (int)((x >> 23) & 255); }
SIM_INLINE I exponents(U x) { return (I)((x >> 23) & 255u); }
SIM_INLINE bool is_denormal(float f) {
  return !(as_u32(f) & 0x7f800000u) && (as_u32(f) & 0x7fffffu);
}
SIM_INLINE bool is_denormal(double f) {
  return !(as_u64(f) & 0x7ff0000000000000ull) && (as_u64(f) & 0xfffffffffffffull);
}

// A negative word for a division that needs scaling or has special values.
SIM_INLINE U uneasy_division(U denominator, U numerator) {
  const I e1 = exponents(denominator), e2 = exponents(numerator);
  const I difference = e2 - e1;
  return (U)((e1 - 2) | (250 - e1) | (e2 - 26) | (254 - e2) | (89 - difference) |
             (difference + 119));
}

// Whether no lane needs scaling or has special values, as is usual and quickly told: both magnitudes
// lie between 2^-44 and 2^45. Inactive lanes count too: to be wrong about them costs time only.
template <class D, class N>
SIM_INLINE bool easy_division(const D& denominator, const N& numerator) {
  U highest = U{};
  for (int c = 0; c < kChunks; c++) {
    const U d = (denominator.at(c) << 1) - (83u << 24);  // wraps when it is less
    const U n = (numerator.at(c) << 1) - (83u << 24);
    const U higher = d > n ? d : n;
    highest = higher > highest ? higher : highest;
  }
  return LIKELY(!any_lane((U)(highest >= 89u << 24)));
}

struct Scaled {
  float value;
  bool flag;
};

Scaled scale_division(float value, float denominator, float numerator) {
  if (numerator == 0 || denominator == 0) return {NAN, false};
  const float up = math::scale_by_power(value, 64);
  const bool of_denominator = as_u32(value) == as_u32(denominator);
  const bool of_numerator = as_u32(value) == as_u32(numerator);
  if (exponent_bits(as_u32(numerator)) - exponent_bits(as_u32(denominator)) >= 96) {
    return {of_denominator ? up : value, true};
  }
  if (is_denormal(denominator)) return {up, false};
  const bool quotient_denormal = is_denormal(numerator / denominator);
  if (is_denormal(1.0 / (double)denominator) && quotient_denormal) {
    return {of_denominator ? up : value, true};
  }
  if (is_denormal(1.0f / denominator)) return {math::scale_by_power(value, -64), false};
  if (quotient_denormal) return {of_numerator ? up : value, true};
  if (exponent_bits(as_u32(numerator)) <= 23) return {up, false};
  return {value, false};
}

// Returns the lanes that v_div_fmas has to scale back.
template <class V, class D, class N>
u64 scale_lanes(u64 exec, u32* dst, const V& value, const D& denominator, const N& numerator) {
  u64 flags = 0;
  for (int c = 0; c < kChunks; c++) {
    U result = value.at(c);
    const U d = denominator.at(c), n = numerator.at(c);
    u64 hard = exec >> (kWidth * c) & sign_bits(uneasy_division(d, n), 0);
    if (UNLIKELY(hard)) {
      const U v = result;
      const I zero = ((F)n == 0.f) | ((F)d == 0.f);
      result = select(zero, splat(as_u32(NAN)), v);
      for (hard &= ~to_bits(zero, 0); hard; hard &= hard - 1) {
        const int i = __builtin_ctzll(hard);
        const Scaled scaled = scale_division(as_f32(v[i]), as_f32(d[i]), as_f32(n[i]));
        result[i] = as_u32(scaled.value);
        flags |= (u64)scaled.flag << (kWidth * c + i);
      }
    }
    store(exec, dst, c, result);
  }
  return flags;
}

struct DivisionScale {
  static constexpr bool kSigns = false;
  static constexpr u32 kWide = 0;
  template <class V, class D, class N>
  static const Inst* run(Wave& wave, const Inst* inst) {
    const V value(wave, inst, 0);
    const D denominator(wave, inst, 1);
    const N numerator(wave, inst, 2);
    const u64 exec = wave.exec();
    u32* dst = settled(wave.regs + inst->dst);
    u64 flags = 0;
    if (easy_division(denominator, numerator)) {
      for (int c = 0; c < kChunks; c++) store(exec, dst, c, value.at(c));
    } else {
      flags = scale_lanes(exec, dst, value, denominator, numerator);
    }
    write64(wave.scalars, inst->dst2, flags);
    return next(wave, inst);
  }
};
REGISTER(v_div_scale_f32, handlers3<DivisionScale>(), 3);

struct DivisionFmas {
  static constexpr bool kSigns = false;
  static constexpr u32 kWide = 0;
  template <class A, class B, class D>
  static const Inst* run(Wave& wave, const Inst* inst) {
    const A a(wave, inst, 0);
    const B b(wave, inst, 1);
    const D d(wave, inst, 2);
    const u64 exec = wave.exec();
    const u64 scaled = read64(wave.scalars, kVcc) & exec;
    u32* dst = settled(wave.regs + inst->dst);
    for (int c = 0; c < kChunks; c++) {
      const U addend = d.at(c);
      U result = (U)fma_lanes((F)a.at(c), (F)b.at(c), (F)addend);
      u64 rest = scaled >> (kWidth * c) & ((1ull << kWidth) - 1);
      for (; UNLIKELY(rest); rest &= rest - 1) {
        const int i = __builtin_ctzll(rest);
        const int power = exponent_bits(addend[i]) > 127 ? 64 : -64;
        result[i] = as_u32(math::scale_by_power(as_f32(result[i]), power));
      }
      store(exec, dst, c, result);
    }
    return next(wave, inst);
  }
};
REGISTER(v_div_fmas_f32, handlers3<DivisionFmas>(), 3);

SIM_INLINE U signed_quotient(U quotient, U denominator, U numerator) {
  return ((denominator ^ numerator) & 0x80000000u) | (quotient & 0x7fffffffu);
}
SIM_INLINE U fix_division(U quotient, U denominator, U numerator) {
  const F d = (F)denominator, n = (F)numerator;
  const U infinity = splat(0x7f800000u);
  const I d_zero = d == 0.f, n_zero = n == 0.f;
  const I d_infinite = (denominator & 0x7fffffffu) == infinity;
  const I n_infinite = (numerator & 0x7fffffffu) == infinity;
  const I vanishes = exponents(numerator) - exponents(denominator) < -150;
  const U sign = (denominator ^ numerator) & 0x80000000u;
  U result = signed_quotient(quotient, denominator, numerator);
  result = select(d_infinite | n_zero | vanishes, sign, result);
  result = select(d_zero | n_infinite, sign | infinity, result);
  result = select((d_zero & n_zero) | (d_infinite & n_infinite), splat(0xffc00000u), result);
  result = select(d != d, denominator | 0x400000u, result);
  return select(n != n, numerator | 0x400000u, result);
}

struct DivisionFixup {
  static constexpr bool kSigns = true;
  static constexpr u32 kWide = 0;
  template <class Q, class D, class N>
  static const Inst* run(Wave& wave, const Inst* inst) {
    const Q quotient(wave, inst, 0);
    const D denominator(wave, inst, 1);
    const N numerator(wave, inst, 2);
    const u64 exec = wave.exec();
    u32* dst = settled(wave.regs + inst->dst);
    const bool easy = easy_division(denominator, numerator);
    for (int c = 0; c < kChunks; c++) {
      const U q = quotient.at(c), d = denominator.at(c), n = numerator.at(c);
      store(exec, dst, c, LIKELY(easy) ? signed_quotient(q, d, n) : fix_division(q, d, n));
    }
    return next(wave, inst);
  }
};
REGISTER(v_div_fixup_f32, handlers3<DivisionFixup>(), 3);

}  // namespace
