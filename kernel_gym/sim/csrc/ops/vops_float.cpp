// f32 and f16 vector operations, and the mixed-precision ones.
#include "ops/sources.h"

namespace {

// ---- f32
UNARY(v_rndne_f32, F, round_lanes(a));
UNARY(v_exp_f32, F, exp2_lanes(a));
UNARY(v_sqrt_f32, F, sqrt_lanes(a));
UNARY(v_rcp_f32, F, reciprocal_lanes(a));
UNARY(v_rcp_iflag_f32, F, reciprocal_lanes(a));
UNARY(v_cvt_f32_f16, U, half_lanes(a));
UNARY(v_cvt_f16_f32, F, to_half(a));

BINARY(v_add_f32, F, a + b);
BINARY(v_sub_f32, F, a - b);
BINARY(v_subrev_f32, F, b - a);
BINARY(v_mul_f32, F, a* b);
BINARY(v_ldexp_f32, U, ldexp_lanes((F)a, (I)b));
BINARY(v_max_f32, F, max_ieee(a, b));
BINARY(v_min_f32, F, min_ieee(a, b));

// v_mul_legacy_f32: 0 * anything is 0.
SIM_INLINE F mul_legacy(F a, F b) { return ((a == 0.f) | (b == 0.f)) ? F{} : a * b; }
BINARY(v_mul_legacy_f32, F, mul_legacy(a, b));

SIM_INLINE F median(F a, F b, F c) {
  const F low = min_ieee(min_ieee(a, b), c);
  const F middle = max_lanes(min_lanes(a, b), min_lanes(max_lanes(a, b), c));
  return ((a != a) | (b != b) | (c != c)) ? low : middle;
}
TERNARY(v_fma_f32, F, fma_lanes(a, b, c));
TERNARY(v_mad_f32, F, a* b + c);
TERNARY(v_max3_f32, F, max_ieee(max_ieee(a, b), c));
TERNARY(v_min3_f32, F, min_ieee(min_ieee(a, b), c));
TERNARY(v_med3_f32, F, median(a, b, c));

// 2^x with denormal results, as compilers expand it: v_cmp_gt, v_cndmask, v_add, v_exp, v_cndmask,
// v_ldexp (kernel_gym/sim/compiler/fusion.py). imm: records that it replaces
struct ScaledExp {
  static constexpr bool kSigns = false;
  static constexpr u32 kWide = 0;
  SIM_METHOD static U power(F x) {
    const I small = splatf(-126.f) > x;
    const F shifted = x + (F)select(small, (U)splatf(64.f), U{});
    return (U)ldexp_lanes(exp2_lanes(shifted), (I)select(small, splat(-64), U{}));
  }
  template <class X>
  static const Inst* run(Wave& wave, const Inst* inst) {
    const X x(wave, inst, 0);
    const u64 exec = wave.exec();
    u32* dst = settled(wave.regs + inst->dst);
    for (int c = 0; c < kChunks; c++) store(exec, dst, c, power((F)x.at(c)));
    return next_after_fused(wave, inst);
  }
};
REGISTER(scaled_exp_f32, handlers1<ScaledExp>(), 1);

// ---- f16: computed in f32 and rounded once
SIM_INLINE F lo(U a) { return half_lanes(a); }
SIM_INLINE F hi(U a) { return half_lanes(a >> 16); }

// a * b + c of f16 values with a single rounding. The product is exact in f32; the sum is rounded
// to odd, so that rounding it to f16 gives what rounding the exact sum would.
SIM_INLINE U fma_half(F a, F b, F c) {
  const F product = a * b;
  const F sum = product + c;
  const F part = sum - product;
  const F error = (product - (sum - part)) + (c - part);
  const U inexact = (U)((error > 0.f) | (error < 0.f));
  const U even = (U)(((U)sum & 1u) == 0u);
  const U away = (U)((error > 0.f) == (sum > 0.f));
  const U step = (away & 2u) - 1u;
  return to_half((F)((U)sum + (step & inexact & even)));
}

BINARY(v_add_f16, U, to_half(lo(a) + lo(b)));
BINARY(v_sub_f16, U, to_half(lo(a) - lo(b)));
BINARY(v_subrev_f16, U, to_half(lo(b) - lo(a)));
BINARY(v_mul_f16, U, to_half(lo(a) * lo(b)));
BINARY(v_max_f16, U, max_half(a, b));
BINARY(v_min_f16, U, min_half(a, b));
BINARY(v_pack_b32_f16, U, pack16(a, b));
TERNARY(v_fma_f16, U, fma_half(lo(a), lo(b), lo(c)));
TERNARY(v_mad_f16, U, to_half(lo(to_half(lo(a) * lo(b))) + lo(c)));
TERNARY(v_max3_f16, U, max_half(max_half(a, b), c));
TERNARY(v_min3_f16, U, min_half(min_half(a, b), c));
SIM_INLINE U median_half(U a, U b, U c) {
  const F x = lo(a), y = lo(b), z = lo(c);
  const U nan = (U)((x != x) | (y != y) | (z != z));
  return (min_half(min_half(a, b), c) & nan) | (to_half(median(x, y, z)) & ~nan);
}
TERNARY(v_med3_f16, U, median_half(a, b, c));

BINARY(v_pk_add_f16, U, pack16(to_half(lo(a) + lo(b)), to_half(hi(a) + hi(b))));
BINARY(v_pk_mul_f16, U, pack16(to_half(lo(a) * lo(b)), to_half(hi(a) * hi(b))));
BINARY(v_pk_max_f16, U, pack16(max_half(a, b), max_half(a >> 16, b >> 16)));
BINARY(v_pk_min_f16, U, pack16(min_half(a, b), min_half(a >> 16, b >> 16)));
TERNARY(v_pk_fma_f16, U, pack16(fma_half(lo(a), lo(b), lo(c)), fma_half(hi(a), hi(b), hi(c))));

// ---- dot products of pairs
SIM_INLINE F bf_lo(U a) { return (F)(a << 16); }
SIM_INLINE F bf_hi(U a) { return (F)(a & 0xffff0000u); }
SIM_INLINE F dot2_f16(U a, U b, F c) { return fma_lanes(hi(a), hi(b), fma_lanes(lo(a), lo(b), c)); }
TERNARY(v_dot2_f32_f16, U, dot2_f16(a, b, (F)c));
TERNARY(v_dot2_f32_bf16, U, bf_lo(a) * bf_lo(b) + bf_hi(a) * bf_hi(b) + (F)c);
TERNARY(v_dot2c_f32_bf16, U, ((F)c + bf_lo(a) * bf_lo(b)) + bf_hi(a) * bf_hi(b));

// ---- packed f32: two registers a source; op_sel picks the register for each half
struct PackedSource {
  const u32 *low, *high;
  size_t step;  // words from chunk to chunk
};

// The rare case of a negated half: both halves are built in `space` from the end, because the one
// chunk of a scalar is at its start.
PackedSource negated_halves(const Operand& operand, PackedSource source, Row* space) {
  const u32 sign_low = operand.flags & kNeg16 ? 0x80000000u : 0u;
  const u32 sign_high = operand.flags & kNeg32 ? 0x80000000u : 0u;
  for (int c = kChunks - 1; c >= 0; c--) {
    const U low = *(const U*)(source.low + c * source.step) ^ sign_low;
    const U high = *(const U*)(source.high + c * source.step) ^ sign_high;
    put(space[0].words, c, low);
    put(space[1].words, c, high);
  }
  return {space[0].words, space[1].words, kWidth};
}

SIM_INLINE PackedSource packed_source(const Wave& wave, const Inst* inst, int i) {
  const Operand& operand = inst->src[i];
  const Anywhere rows(wave, inst, i);
  const u32* second = rows.words + kLanes;
  const PackedSource source = {operand.flags & kLowFromHigh ? second : rows.words,
                               operand.flags & kHighFromHigh ? second : rows.words, rows.step};
  if (LIKELY(!(operand.flags & (kNeg16 | kNeg32)))) return source;
  return negated_halves(operand, source, wave.spare + 2 * i);
}

enum class Packed { kMove, kAdd, kMul, kFma };

template <Packed op>
SIM_INLINE U packed_apply(U a, U b, U c) {
  switch (op) {
    case Packed::kAdd:
      return (U)((F)a + (F)b);
    case Packed::kMul:
      return (U)((F)a * (F)b);
    case Packed::kFma:
      return (U)fma_lanes((F)a, (F)b, (F)c);
    default:
      return a;
  }
}

template <Packed op>
const Inst* packed_f32(Wave& wave, const Inst* inst) {
  const PackedSource a = packed_source(wave, inst, 0);
  const PackedSource b = packed_source(wave, inst, 1);
  const PackedSource d = op == Packed::kFma ? packed_source(wave, inst, 2) : a;
  const auto at = [](const u32* words, size_t step, int c) {
    return *(const U*)(words + c * step);
  };
  u32* dst = settled(wave.regs + inst->dst);
  const u64 exec = wave.exec();
  for (int c = 0; c < kChunks; c++) {
    // v_pk_mov_b32: the low result comes from the first source, the high one from the second
    const U high_first = op == Packed::kMove ? at(b.high, b.step, c) : at(a.high, a.step, c);
    const U low =
        packed_apply<op>(at(a.low, a.step, c), at(b.low, b.step, c), at(d.low, d.step, c));
    const U high = packed_apply<op>(high_first, at(b.high, b.step, c), at(d.high, d.step, c));
    store(exec, dst, c, low);
    store(exec, dst + kLanes, c, high);
  }
  return next(wave, inst);
}
REGISTER(v_pk_mov_b32, packed_f32<Packed::kMove>, 2);
REGISTER(v_pk_add_f32, packed_f32<Packed::kAdd>, 2);
REGISTER(v_pk_mul_f32, packed_f32<Packed::kMul>, 2);
REGISTER(v_pk_fma_f32, packed_f32<Packed::kFma>, 3);

}  // namespace
