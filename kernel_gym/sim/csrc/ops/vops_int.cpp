// Integer vector operations on 32-bit and 16-bit lanes.
#include "ops/sources.h"

namespace {

// ---- 32 bits
UNARY(v_mov_b32, U, a);
UNARY(v_not_b32, U, ~a);
UNARY(v_cvt_f32_i32, I, (U) __builtin_convertvector(a, F));
UNARY(v_cvt_f32_u32, U, (U) __builtin_convertvector(a, F));
UNARY(v_cvt_f32_ubyte0, U, (U) __builtin_convertvector((I)(a & 0xffu), F));
UNARY(v_cvt_f32_ubyte1, U, (U) __builtin_convertvector((I)((a >> 8) & 0xffu), F));
UNARY(v_cvt_f32_ubyte2, U, (U) __builtin_convertvector((I)((a >> 16) & 0xffu), F));
UNARY(v_cvt_f32_ubyte3, U, (U) __builtin_convertvector((I)(a >> 24), F));

SIM_INLINE U low24(U a) { return a & 0xffffffu; }
SIM_INLINE I sext24(I a) { return (a << 8) >> 8; }
SIM_INLINE U ones(U count) { return ((splat(1u)) << (count & 31u)) - 1u; }

BINARY(v_add_u32, U, a + b);
BINARY(v_sub_u32, U, a - b);
BINARY(v_subrev_u32, U, b - a);
BINARY(v_add_u32_clamp, U, select((I)(a + b < a), ~U{}, a + b));
BINARY(v_sub_u32_clamp, U, select((I)(a < b), U{}, a - b));
BINARY(v_subrev_u32_clamp, U, select((I)(b < a), U{}, b - a));
BINARY(v_and_b32, U, a& b);
BINARY(v_or_b32, U, a | b);
BINARY(v_xor_b32, U, a ^ b);
BINARY(v_xnor_b32, U, ~(a ^ b));
BINARY(v_lshlrev_b32, U, b << (a & 31u));
BINARY(v_lshrrev_b32, U, b >> (a & 31u));
BINARY(v_ashrrev_i32, I, b >> (a & 31));
BINARY(v_mul_lo_u32, U, a* b);
BINARY(v_mul_hi_u32, U, mul_hi_lanes(a, b));
BINARY(v_mul_u32_u24, U, low24(a) * low24(b));
BINARY(v_mul_i32_i24, I, sext24(a) * sext24(b));
BINARY(v_max_u32, U, a > b ? a : b);
BINARY(v_min_u32, U, a < b ? a : b);
BINARY(v_max_i32, I, a > b ? a : b);
BINARY(v_min_i32, I, a < b ? a : b);
BINARY(v_bfm_b32, U, ones(a) << (b & 31u));
SIM_INLINE U clamp_u16(U a) { return a > 0xffffu ? splat(0xffffu) : a; }
BINARY(v_cvt_pk_u16_u32, U, pack16(clamp_u16(a), clamp_u16(b)));

SIM_INLINE I clamp_i16(I a) {
  const I low = a < -32768 ? I{} - 32768 : a;
  return low > 32767 ? I{} + 32767 : low;
}
BINARY(v_cvt_pk_i16_i32, I, pack16((U)clamp_i16(a), (U)clamp_i16(b)));

SIM_INLINE U umax(U a, U b) { return a > b ? a : b; }
SIM_INLINE U umin(U a, U b) { return a < b ? a : b; }
SIM_INLINE I imax(I a, I b) { return a > b ? a : b; }
SIM_INLINE I imin(I a, I b) { return a < b ? a : b; }

SIM_INLINE U bfe_u(U a, U offset, U width) { return (a >> (offset & 31u)) & ones(width); }
SIM_INLINE U bfe_i(U a, U offset, U width) {
  const U shift = (32u - (width & 31u)) & 31u;
  const I moved = (I)a >> (I)(offset & 31u);  // bits past the top are copies of the sign
  const U field = (U)((I)((U)moved << shift) >> (I)shift);
  return select((I)((width & 31u) == 0u), U{}, field);
}
SIM_INLINE U align_bits(U high, U low, U shift) {
  const U s = shift & 31u;
  const U joined = (low >> s) | (high << ((32u - s) & 31u));
  return select((I)(s == 0u), low, joined);
}

TERNARY(v_and_or_b32, U, (a & b) | c);
TERNARY(v_or3_b32, U, a | b | c);
TERNARY(v_xad_u32, U, (a ^ b) + c);
TERNARY(v_lshl_or_b32, U, (a << (b & 31u)) | c);
TERNARY(v_lshl_add_u32, U, (a << (b & 31u)) + c);
TERNARY(v_add_lshl_u32, U, (a + b) << (c & 31u));
TERNARY(v_add3_u32, U, a + b + c);
TERNARY(v_bfi_b32, U, (a & b) | (~a & c));
TERNARY(v_mad_u32_u24, U, low24(a) * low24(b) + c);
TERNARY(v_mad_i32_i24, I, sext24(a) * sext24(b) + c);
TERNARY(v_bfe_u32, U, bfe_u(a, b, c));
TERNARY(v_bfe_i32, U, bfe_i(a, b, c));
TERNARY(v_max3_u32, U, umax(umax(a, b), c));
TERNARY(v_min3_u32, U, umin(umin(a, b), c));
TERNARY(v_med3_u32, U, umax(umin(a, b), umin(umax(a, b), c)));
TERNARY(v_max3_i32, I, imax(imax(a, b), c));
TERNARY(v_min3_i32, I, imin(imin(a, b), c));
TERNARY(v_med3_i32, I, imax(imin(a, b), imin(imax(a, b), c)));
TERNARY(v_alignbit_b32, U, align_bits(a, b, c));
TERNARY(v_alignbyte_b32, U, align_bits(a, b, (c & 3u) << 3));
TERNARY(v_sad_u32, U, (umax(a, b) - umin(a, b)) + c);

// ---- 16 bits: the high half of the destination becomes zero
BINARY(v_add_u16, U, low16(a + b));
BINARY(v_sub_u16, U, low16(a - b));
BINARY(v_subrev_u16, U, low16(b - a));
BINARY(v_add_i16, U, low16(a + b));
BINARY(v_sub_i16, U, low16(a - b));
BINARY(v_add_u16_clamp, U, umin(low16(a) + low16(b), splat(0xffffu)));
BINARY(v_sub_u16_clamp, U, select((I)(low16(a) < low16(b)), U{}, low16(a - b)));
BINARY(v_add_i16_clamp, U, low16((U)clamp_i16(sext16(a) + sext16(b))));
BINARY(v_sub_i16_clamp, U, low16((U)clamp_i16(sext16(a) - sext16(b))));
BINARY(v_mul_lo_u16, U, low16(a* b));
BINARY(v_lshlrev_b16, U, low16(b << (a & 15u)));
BINARY(v_lshrrev_b16, U, low16(b) >> (a & 15u));
BINARY(v_ashrrev_i16, U, low16((U)(sext16(b) >> (I)(a & 15u))));
BINARY(v_max_u16, U, umax(low16(a), low16(b)));
BINARY(v_min_u16, U, umin(low16(a), low16(b)));
BINARY(v_max_i16, U, low16((U)imax(sext16(a), sext16(b))));
BINARY(v_min_i16, U, low16((U)imin(sext16(a), sext16(b))));

TERNARY(v_mad_u16, U, low16(a* b + c));
TERNARY(v_mad_i16, U, low16(a* b + c));
TERNARY(v_mad_i32_i16, U, (U)(sext16(a) * sext16(b) + (I)c));
TERNARY(v_mad_u32_u16, U, low16(a) * low16(b) + c);
TERNARY(v_max3_u16, U, umax(umax(low16(a), low16(b)), low16(c)));
TERNARY(v_min3_u16, U, umin(umin(low16(a), low16(b)), low16(c)));
TERNARY(v_max3_i16, U, low16((U)imax(imax(sext16(a), sext16(b)), sext16(c))));
TERNARY(v_min3_i16, U, low16((U)imin(imin(sext16(a), sext16(b)), sext16(c))));

SIM_INLINE U med3_u16(U a, U b, U c) {
  const U x = low16(a), y = low16(b), z = low16(c);
  return umax(umin(x, y), umin(umax(x, y), z));
}
SIM_INLINE U med3_i16(U a, U b, U c) {
  const I x = sext16(a), y = sext16(b), z = sext16(c);
  return low16((U)imax(imin(x, y), imin(imax(x, y), z)));
}
TERNARY(v_med3_u16, U, med3_u16(a, b, c));
TERNARY(v_med3_i16, U, med3_i16(a, b, c));

// ---- packed pairs of 16 bits; half selection has been done by the operand modifiers
SIM_INLINE I high_i16(U a) { return (I)a >> 16; }
SIM_INLINE U high16(U a) { return a >> 16; }

BINARY(v_pk_add_u16, U, pack16(a + b, high16(a) + high16(b)));
BINARY(v_pk_sub_u16, U, pack16(a - b, high16(a) - high16(b)));
BINARY(v_pk_add_i16, U, pack16(a + b, high16(a) + high16(b)));
BINARY(v_pk_sub_i16, U, pack16(a - b, high16(a) - high16(b)));
BINARY(v_pk_add_u16_clamp, U,
       pack16(umin(low16(a) + low16(b), splat(0xffffu)),
              umin(high16(a) + high16(b), splat(0xffffu))));
BINARY(v_pk_sub_u16_clamp, U,
       pack16(umax(low16(a), low16(b)) - low16(b), umax(high16(a), high16(b)) - high16(b)));
BINARY(v_pk_add_i16_clamp, U,
       pack16((U)clamp_i16(sext16(a) + sext16(b)), (U)clamp_i16(high_i16(a) + high_i16(b))));
BINARY(v_pk_sub_i16_clamp, U,
       pack16((U)clamp_i16(sext16(a) - sext16(b)), (U)clamp_i16(high_i16(a) - high_i16(b))));
BINARY(v_pk_mul_lo_u16, U, pack16(a* b, high16(a) * high16(b)));
BINARY(v_pk_max_u16, U, pack16(umax(low16(a), low16(b)), umax(high16(a), high16(b))));
BINARY(v_pk_min_u16, U, pack16(umin(low16(a), low16(b)), umin(high16(a), high16(b))));
BINARY(v_pk_max_i16, U, pack16((U)imax(sext16(a), sext16(b)), (U)imax(high_i16(a), high_i16(b))));
BINARY(v_pk_min_i16, U, pack16((U)imin(sext16(a), sext16(b)), (U)imin(high_i16(a), high_i16(b))));
BINARY(v_pk_lshlrev_b16, U, pack16(b << (a & 15u), high16(b) << (high16(a) & 15u)));
BINARY(v_pk_lshrrev_b16, U, pack16(low16(b) >> (a & 15u), high16(b) >> (high16(a) & 15u)));
BINARY(v_pk_ashrrev_i16, U,
       pack16((U)(sext16(b) >> (I)(a & 15u)), (U)(high_i16(b) >> (I)(high16(a) & 15u))));
TERNARY(v_pk_mad_u16, U, pack16(a* b + c, high16(a) * high16(b) + high16(c)));
TERNARY(v_pk_mad_i16, U, pack16(a* b + c, high16(a) * high16(b) + high16(c)));

// ---- any function of three bits: bit 4 a + 2 b + c of the truth table (imm)
const Inst* v_bitop3_b32(Wave& wave, const Inst* inst) {
  const u32* a = source(wave, inst->src[0], wave.spare[0]);
  const u32* b = source(wave, inst->src[1], wave.spare[1]);
  const u32* d = source(wave, inst->src[2], wave.spare[2]);
  u32* dst = wave.regs + inst->dst;
  U table[8];
  for (int i = 0; i < 8; i++) table[i] = splat(inst->imm >> i & 1 ? ~0u : 0u);
  for (int c = 0; c < kChunks; c++) {
    const U x = load(a, c), y = load(b, c), z = load(d, c);
    const U low =
        (~y & ((~z & table[0]) | (z & table[1]))) | (y & ((~z & table[2]) | (z & table[3])));
    const U high =
        (~y & ((~z & table[4]) | (z & table[5]))) | (y & ((~z & table[6]) | (z & table[7])));
    const U result = (~x & low) | (x & high);
    store(wave.exec(), dst, c, inst->aux ? low16(result) : result);
  }
  return next(wave, inst);
}
REGISTER(v_bitop3_b32, v_bitop3_b32, 3);

// ---- byte permutation: bytes 0..3 of the selector's view are the second source
SIM_INLINE U permute_bytes(U high, U low, U selector) {
  U result = U{};
  for (int i = 0; i < 4; i++) {
    const U code = selector >> (8 * i) & 0xffu;
    const U word = select((I)((code & 4u) != 0u), high, low);
    const U moved = word >> ((code & 3u) << 3) & 0xffu;
    // 8..11: the sign of a half, 12: zero, above: ones
    const U half = select((I)((code & 2u) != 0u), high, low);
    const U sign = (U)((I)(half << (((code & 1u) ^ 1u) << 4)) >> 31) & 0xffu;
    const U constant = select((I)(code == 12u), U{}, splat(0xffu));
    const U special = select((I)(code >= 12u), constant, sign);
    result |= select((I)(code >= 8u), special, moved) << (8 * i);
  }
  return result;
}

// Selectors that only move bytes.
SIM_INLINE U move_bytes(U high, U low, U selector) {
#if defined(SIM_AVX512)
  const U place = (U)_mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
  const U from = (selector & 0x03030303u) | place;
  const __mmask64 upper = _mm512_test_epi8_mask((__m512i)selector, _mm512_set1_epi8(4));
  const __m512i moved = _mm512_shuffle_epi8((__m512i)low, (__m512i)from);
  return (U)_mm512_mask_shuffle_epi8(moved, upper, (__m512i)high, (__m512i)from);
#else
  U result = U{};
  for (int i = 0; i < 4; i++) {
    const U code = selector >> (8 * i);
    const U word = select((I)((code & 4u) != 0u), high, low);
    result |= (word >> ((code & 3u) << 3) & 0xffu) << (8 * i);
  }
  return result;
#endif
}

struct Permute {
  static constexpr bool kSigns = false;
  static constexpr u32 kWide = 0;
  template <class A, class B, class C>
  static const Inst* run(Wave& wave, const Inst* inst) {
    const A high(wave, inst, 0);
    const B low(wave, inst, 1);
    const C selector(wave, inst, 2);
    const u64 exec = wave.exec();
    u32* dst = settled(wave.regs + inst->dst);
    for (int c = 0; c < kChunks; c++) {
      const U h = high.at(c), l = low.at(c), s = selector.at(c);
      const bool special = any_lane((U)((s & 0xf8f8f8f8u) != 0u));
      store(exec, dst, c, UNLIKELY(special) ? permute_bytes(h, l, s) : move_bytes(h, l, s));
    }
    return next(wave, inst);
  }
};
REGISTER(v_perm_b32, handlers3<Permute>(), 3);

// ---- carries. dst2: carry-out (scalar pair), src[2]: carry-in (scalar pair)
enum class Carry { kAdd, kSub, kSubRev };

template <Carry kind, bool with_carry_in>
struct AddCarry {
  static constexpr bool kSigns = false;
  static constexpr u32 kWide = 0;
  template <class A, class B>
  static const Inst* run(Wave& wave, const Inst* inst) {
    const A first(wave, inst, 0);
    const B second(wave, inst, 1);
    u32* dst = settled(wave.regs + inst->dst);
    const u64 exec = wave.exec();
    const u64 carry_in = with_carry_in ? read64(wave.scalars, inst->src[2].index) : 0;
    u64 carry_out = 0;
    for (int c = 0; c < kChunks; c++) {
      const U p = first.at(c), q = second.at(c), in = lane_mask(carry_in, c) & 1u;
      const U x = kind == Carry::kSubRev ? q : p, y = kind == Carry::kSubRev ? p : q;
      if (kind == Carry::kAdd) {
        const U sum = x + y, total = sum + in;
        carry_out |= to_bits((I)((sum < x) | (total < sum)), c);
        store(exec, dst, c, total);
      } else {
        const U difference = x - y;
        carry_out |= to_bits((I)((x < y) | (difference < in)), c);
        store(exec, dst, c, difference - in);
      }
    }
    write64(wave.scalars, inst->dst2, carry_out & exec);
    return next(wave, inst);
  }
};
REGISTER(v_add_co_u32, handlers2<AddCarry<Carry::kAdd, false>>(), 2);
REGISTER(v_sub_co_u32, handlers2<AddCarry<Carry::kSub, false>>(), 2);
REGISTER(v_subrev_co_u32, handlers2<AddCarry<Carry::kSubRev, false>>(), 2);
REGISTER(v_addc_co_u32, handlers_by_bits<AddCarry<Carry::kAdd, true>>(), 3);
REGISTER(v_subb_co_u32, handlers_by_bits<AddCarry<Carry::kSub, true>>(), 3);
REGISTER(v_subbrev_co_u32, handlers_by_bits<AddCarry<Carry::kSubRev, true>>(), 3);

struct Choose {
  static constexpr bool kSigns = false;
  static constexpr u32 kWide = 0;
  template <class A, class B>
  static const Inst* run(Wave& wave, const Inst* inst) {
    const A no(wave, inst, 0);
    const B yes(wave, inst, 1);
    const u64 condition = read64(wave.scalars, inst->src[2].index);
    const u64 exec = wave.exec();
    u32* dst = settled(wave.regs + inst->dst);
    for (int c = 0; c < kChunks; c++) store(exec, dst, c, blend(condition, c, yes.at(c), no.at(c)));
    return next(wave, inst);
  }
};
REGISTER(v_cndmask_b32, handlers_by_bits<Choose>(), 3);

}  // namespace
