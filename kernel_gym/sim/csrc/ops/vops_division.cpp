// f32 division as compilers expand it: v_div_scale, a Newton iteration, v_div_fmas, v_div_fixup.
#include "ops/scalar_math.h"
#include "ops/sources.h"

namespace {

SIM_INLINE u64 chunk_bits(u64 lanes, int c) {
  return lanes >> (kWidth * c) & ((1ull << kWidth) - 1);
}
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

// Whether no lane needs scaling or has special values, which is the usual case. The check is fast:
// both magnitudes are between 2^-44 and 2^45. It includes inactive lanes, which can only cost time.
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

// v_div_scale for the lanes of a chunk; `flags` get those that v_div_fmas has to scale back.
SIM_INLINE U scale_chunk(u64 active, U value, U d, U n, u64& flags) {
  u64 hard = active & sign_bits(uneasy_division(d, n), 0);
  if (LIKELY(!hard)) return value;
  const I zero = ((F)n == 0.f) | ((F)d == 0.f);
  U result = select(zero, splat(as_u32(NAN)), value);
  for (hard &= ~to_bits(zero, 0); hard; hard &= hard - 1) {
    const int i = __builtin_ctzll(hard);
    const Scaled scaled = scale_division(as_f32(value[i]), as_f32(d[i]), as_f32(n[i]));
    result[i] = as_u32(scaled.value);
    flags |= (u64)scaled.flag << i;
  }
  return result;
}

// Scales back the lanes of a chunk that have a bit.
SIM_INLINE U scale_back(u64 scaled, U quotient, U addend) {
  for (; UNLIKELY(scaled); scaled &= scaled - 1) {
    const int i = __builtin_ctzll(scaled);
    const int power = exponent_bits(addend[i]) > 127 ? 64 : -64;
    quotient[i] = as_u32(math::scale_by_power(as_f32(quotient[i]), power));
  }
  return quotient;
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
      for (int c = 0; c < kChunks; c++) {
        u64 found = 0;
        const u64 active = chunk_bits(exec, c);
        store(exec, dst, c,
              scale_chunk(active, value.at(c), denominator.at(c), numerator.at(c), found));
        flags |= found << (kWidth * c);
      }
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
      const U result = (U)fma_lanes((F)a.at(c), (F)b.at(c), (F)addend);
      store(exec, dst, c, scale_back(chunk_bits(scaled, c), result, addend));
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

// The whole division (kernel_gym/sim/compiler/fusion.py): the same operations in the same order
// with the same roundings, without storing the values in between. imm: records that it replaces
struct Division {
  static constexpr bool kSigns = false;
  static constexpr u32 kWide = 0;
  SIM_METHOD static U quotient(u64 active, U d, U n, bool easy) {
    u64 unused = 0, scaled = 0;
    const F x = (F)(LIKELY(easy) ? d : scale_chunk(active, d, d, n, unused));
    const F y = (F)(LIKELY(easy) ? n : scale_chunk(active, n, d, n, scaled));
    const F guess = reciprocal_lanes(x);
    const F inverse = fma_lanes(fma_lanes(-x, guess, splatf(1.f)), guess, guess);
    const F first = y * inverse;
    const F second = fma_lanes(fma_lanes(-x, first, y), inverse, first);
    const F remainder = fma_lanes(-x, second, y);
    const U result = (U)fma_lanes(remainder, inverse, second);
    if (LIKELY(easy)) return signed_quotient(result, d, n);
    return fix_division(scale_back(scaled, result, (U)second), d, n);
  }
  template <class D, class N>
  static const Inst* run(Wave& wave, const Inst* inst) {
    const D denominator(wave, inst, 0);
    const N numerator(wave, inst, 1);
    const u64 exec = wave.exec();
    u32* dst = settled(wave.regs + inst->dst);
    const bool easy = easy_division(denominator, numerator);
    for (int c = 0; c < kChunks; c++) {
      store(exec, dst, c, quotient(chunk_bits(exec, c), denominator.at(c), numerator.at(c), easy));
    }
    return next_after_fused(wave, inst);
  }
};
REGISTER(division_f32, handlers2<Division>(), 2);

}  // namespace
