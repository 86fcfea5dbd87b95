// Vector comparisons: a bit a lane into a scalar register pair (and EXEC for v_cmpx).
#include "ops/sources.h"

namespace {

// imm is set for v_cmpx_*: the result also becomes EXEC.
SIM_INLINE void write_condition(Wave& wave, const Inst* inst, u64 bits) {
  bits &= wave.exec();
  write64(wave.scalars, inst->dst, bits);
  if (inst->imm) wave.exec() = bits;
}

template <class Condition>
struct Compare {
  static constexpr bool kSigns = false;
  static constexpr u32 kWide = 0;
  template <class A, class B>
  static const Inst* run(Wave& wave, const Inst* inst) {
    const A a(wave, inst, 0);
    const B b(wave, inst, 1);
    u64 bits = 0;
    for (int c = 0; c < kChunks; c++) bits |= to_bits(Condition::apply(a.at(c), b.at(c)), c);
    write_condition(wave, inst, bits);
    return next(wave, inst);
  }
};

// COMPARE(name, expression of words `a` and `b` that is a vector of masks)
#define COMPARE(name, expression)                        \
  struct name {                                          \
    static I apply(U a, U b) { return (I)(expression); } \
  };                                                     \
  REGISTER(name, handlers2<Compare<name>>(), 2)

#define COMPARE_ALL(type, convert)                    \
  COMPARE(v_cmp_lt_##type, convert(a) < convert(b));  \
  COMPARE(v_cmp_eq_##type, convert(a) == convert(b)); \
  COMPARE(v_cmp_le_##type, convert(a) <= convert(b)); \
  COMPARE(v_cmp_gt_##type, convert(a) > convert(b));  \
  COMPARE(v_cmp_ge_##type, convert(a) >= convert(b))

#define COMPARE_FLOAT(type, convert)                                                   \
  COMPARE(v_cmp_lg_##type, (convert(a) < convert(b)) | (convert(a) > convert(b)));     \
  COMPARE(v_cmp_o_##type, (convert(a) == convert(a)) & (convert(b) == convert(b)));    \
  COMPARE(v_cmp_u_##type, (convert(a) != convert(a)) | (convert(b) != convert(b)));    \
  COMPARE(v_cmp_nge_##type, ~(convert(a) >= convert(b)));                              \
  COMPARE(v_cmp_nlg_##type, ~((convert(a) < convert(b)) | (convert(a) > convert(b)))); \
  COMPARE(v_cmp_ngt_##type, ~(convert(a) > convert(b)));                               \
  COMPARE(v_cmp_nle_##type, ~(convert(a) <= convert(b)));                              \
  COMPARE(v_cmp_neq_##type, convert(a) != convert(b));                                 \
  COMPARE(v_cmp_nlt_##type, ~(convert(a) < convert(b)))

SIM_INLINE U to_unsigned(U a) { return a; }
SIM_INLINE I to_signed(U a) { return (I)a; }
SIM_INLINE F to_float(U a) { return (F)a; }

COMPARE_ALL(u32, to_unsigned);
COMPARE_ALL(i32, to_signed);
COMPARE_ALL(u16, low16);
COMPARE_ALL(i16, sext16);
COMPARE_ALL(f32, to_float);
COMPARE_ALL(f16, half_lanes);
COMPARE(v_cmp_ne_u32, a != b);
COMPARE(v_cmp_ne_i32, a != b);
COMPARE(v_cmp_ne_u16, low16(a) != low16(b));
COMPARE(v_cmp_ne_i16, low16(a) != low16(b));
COMPARE_FLOAT(f32, to_float);
COMPARE_FLOAT(f16, half_lanes);

// v_cmp_t_*, v_cmp_f_*, v_cmp_tru_*: constants
const Inst* v_cmp_true(Wave& wave, const Inst* inst) {
  write_condition(wave, inst, kAllLanes);
  return next(wave, inst);
}
const Inst* v_cmp_false(Wave& wave, const Inst* inst) {
  write_condition(wave, inst, 0);
  return next(wave, inst);
}
REGISTER(v_cmp_true, v_cmp_true);
REGISTER(v_cmp_false, v_cmp_false);

// ---- 64 bits
template <class T, class Op>
const Inst* compare64(Wave& wave, const Inst* inst) {
  RowPair ra, rb;
  const u32* a = source64(wave, inst->src[0], ra);
  const u32* b = source64(wave, inst->src[1], rb);
  u64 bits = 0;
  for (int l = 0; l < kLanes; l++) {
    const u64 x = pair(a, l), y = pair(b, l);
    T p, q;
    memcpy(&p, &x, 8);
    memcpy(&q, &y, 8);
    bits |= (u64)Op::apply(p, q) << l;
  }
  write_condition(wave, inst, bits);
  return inst + 1;
}

#define COMPARE64(name, T, expression)                 \
  struct name {                                        \
    static bool apply(T a, T b) { return expression; } \
  };                                                   \
  REGISTER(name, compare64<T, name>, 2)

#define COMPARE64_ALL(type, T)           \
  COMPARE64(v_cmp_lt_##type, T, a < b);  \
  COMPARE64(v_cmp_eq_##type, T, a == b); \
  COMPARE64(v_cmp_le_##type, T, a <= b); \
  COMPARE64(v_cmp_gt_##type, T, a > b);  \
  COMPARE64(v_cmp_ge_##type, T, a >= b)

COMPARE64_ALL(u64, u64);
COMPARE64_ALL(i64, i64);
COMPARE64_ALL(f64, double);
COMPARE64(v_cmp_ne_u64, u64, a != b);
COMPARE64(v_cmp_ne_i64, i64, a != b);
COMPARE64(v_cmp_lg_f64, double, a<b || a> b);
COMPARE64(v_cmp_o_f64, double, a == a && b == b);
COMPARE64(v_cmp_u_f64, double, a != a || b != b);
COMPARE64(v_cmp_nge_f64, double, !(a >= b));
COMPARE64(v_cmp_nlg_f64, double, !(a < b || a > b));
COMPARE64(v_cmp_ngt_f64, double, !(a > b));
COMPARE64(v_cmp_nle_f64, double, !(a <= b));
COMPARE64(v_cmp_neq_f64, double, a != b);
COMPARE64(v_cmp_nlt_f64, double, !(a < b));

// ---- classes of floating-point numbers: the bit of the class in the second source's mask
enum Class {
  kSignalingNan,
  kQuietNan,
  kNegativeInfinity,
  kNegativeNormal,
  kNegativeDenormal,
  kNegativeZero,
  kPositiveZero,
  kPositiveDenormal,
  kPositiveNormal,
  kPositiveInfinity,
};

SIM_INLINE int classify(u64 bits, int mantissa_bits, int exponent_bits) {
  const u64 mantissa = bits & ((1ull << mantissa_bits) - 1);
  const u64 top = (1ull << exponent_bits) - 1;
  const u64 exponent = (bits >> mantissa_bits) & top;
  const bool negative = (bits >> (mantissa_bits + exponent_bits)) & 1;
  if (exponent == top && mantissa) {
    return mantissa >> (mantissa_bits - 1) ? kQuietNan : kSignalingNan;
  }
  if (exponent == top) return negative ? kNegativeInfinity : kPositiveInfinity;
  if (exponent) return negative ? kNegativeNormal : kPositiveNormal;
  if (mantissa) return negative ? kNegativeDenormal : kPositiveDenormal;
  return negative ? kNegativeZero : kPositiveZero;
}

template <int mantissa_bits, int exponent_bits>
const Inst* compare_class(Wave& wave, const Inst* inst) {
  constexpr bool wide = mantissa_bits == 52;
  RowPair wide_row;
  Row row, mask_row;
  const u32* a = wide ? source64(wave, inst->src[0], wide_row) : source(wave, inst->src[0], row);
  const u32* mask = source(wave, inst->src[1], mask_row);
  u64 bits = 0;
  for (int l = 0; l < kLanes; l++) {
    const u64 value = wide ? pair(a, l) : a[l];
    bits |= (u64)((mask[l] >> classify(value, mantissa_bits, exponent_bits)) & 1) << l;
  }
  write_condition(wave, inst, bits);
  return inst + 1;
}
REGISTER(v_cmp_class_f16, compare_class<10, 5>, 2);
REGISTER(v_cmp_class_f32, compare_class<23, 8>, 2);
REGISTER(v_cmp_class_f64, compare_class<52, 11>, 2);

}  // namespace
