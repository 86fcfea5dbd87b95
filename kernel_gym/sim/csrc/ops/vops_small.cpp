// Conversions from and to small floats: plain, and scaled by a power of two (gfx950).
#include <algorithm>

#include "ops/small_float.h"
#include "ops/sources.h"

namespace {

using small::Format;

// MODE.FP16_OVFL: conversions to 8 bits saturate.
SIM_INLINE bool saturates(const Wave& wave) { return wave.mode >> 23 & 1; }

// ---- plain conversions; the suffix _ocp of a name marks the OCP formats
template <Format format>
const Inst* from_small(Wave& wave, const Inst* inst) {
  Row ra, result;
  const u32* a = source(wave, inst->src[0], ra);
  for (int l = 0; l < kLanes; l++) result.words[l] = as_u32(small::decode(a[l] & 0xff, format));
  store_row(wave.exec(), wave.regs + inst->dst, result.words);
  return inst + 1;
}

template <Format format>
const Inst* pair_from_small(Wave& wave, const Inst* inst) {
  Row ra;
  RowPair result;
  const u32* a = source(wave, inst->src[0], ra);
  for (int l = 0; l < kLanes; l++) {
    result.words[l] = as_u32(small::decode(a[l] & 0xff, format));
    result.words[kLanes + l] = as_u32(small::decode((a[l] >> 8) & 0xff, format));
  }
  u32* dst = wave.regs + inst->dst;
  store_row(wave.exec(), dst, result.words);
  store_row(wave.exec(), dst + kLanes, result.words + kLanes);
  return inst + 1;
}

template <Format format>
const Inst* pair_to_small(Wave& wave, const Inst* inst) {
  Row ra, rb, result;
  const u32* a = source(wave, inst->src[0], ra);
  const u32* b = source(wave, inst->src[1], rb);
  const bool saturate = saturates(wave);
  for (int l = 0; l < kLanes; l++) {
    result.words[l] = small::encode(as_f32(a[l]), format, saturate) |
                      small::encode(as_f32(b[l]), format, saturate) << 8;
  }
  store_row(wave.exec(), wave.regs + inst->dst, result.words);
  return inst + 1;
}

template <Format format>
const Inst* stochastic_to_small(Wave& wave, const Inst* inst) {
  Row ra, rb, result;
  const u32* a = source(wave, inst->src[0], ra);
  const u32* random = source(wave, inst->src[1], rb);
  const bool saturate = saturates(wave);
  for (int l = 0; l < kLanes; l++) {
    result.words[l] = small::encode_stochastic(as_f32(a[l]), random[l], format, saturate);
  }
  store_row(wave.exec(), wave.regs + inst->dst, result.words);
  return inst + 1;
}

#define REGISTER_SMALL(type, suffix, format)                                \
  REGISTER(v_cvt_f32_##type##suffix, from_small<small::format>, 1);         \
  REGISTER(v_cvt_pk_f32_##type##suffix, pair_from_small<small::format>, 1); \
  REGISTER(v_cvt_pk_##type##_f32##suffix, pair_to_small<small::format>, 2); \
  REGISTER(v_cvt_sr_##type##_f32##suffix, stochastic_to_small<small::format>, 2)
REGISTER_SMALL(fp8, , kFp8Fnuz);
REGISTER_SMALL(bf8, , kBf8Fnuz);
REGISTER_SMALL(fp8, _ocp, kFp8);
REGISTER_SMALL(bf8, _ocp, kBf8);

// ---- 16-bit floats
SIM_INLINE u32 to_bf16(float x) {
  const u32 bits = as_u32(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
SIM_INLINE u32 to_f16(float x) { return float_to_half(x); }

template <u32 (*convert)(float)>
const Inst* pair_to_half(Wave& wave, const Inst* inst) {
  Row ra, rb, result;
  const u32* a = source(wave, inst->src[0], ra);
  const u32* b = source(wave, inst->src[1], rb);
  for (int l = 0; l < kLanes; l++) {
    result.words[l] = convert(as_f32(a[l])) | convert(as_f32(b[l])) << 16;
  }
  store_row(wave.exec(), wave.regs + inst->dst, result.words);
  return inst + 1;
}
u32 nearest_bf16(float x) { return to_bf16(x); }
u32 nearest_f16(float x) { return to_f16(x); }
REGISTER(v_cvt_pk_bf16_f32, pair_to_half<nearest_bf16>, 2);
REGISTER(v_cvt_pk_f16_f32, pair_to_half<nearest_f16>, 2);

// Random bits are added below the last kept bit, then the rest is dropped.
template <bool is_bf16>
const Inst* stochastic_to_half(Wave& wave, const Inst* inst) {
  Row ra, rb, result;
  const u32* a = source(wave, inst->src[0], ra);
  const u32* random = source(wave, inst->src[1], rb);
  const u32 dropped = is_bf16 ? 16 : 13;
  for (int l = 0; l < kLanes; l++) {
    u32 x = a[l];
    if ((x & 0x7f800000u) != 0x7f800000u) {
      x = (x + (random[l] >> (32 - dropped))) & ~((1u << dropped) - 1);
    }
    result.words[l] = is_bf16 ? to_bf16(as_f32(x)) : to_f16(as_f32(x));
  }
  store_row(wave.exec(), wave.regs + inst->dst, result.words);
  return inst + 1;
}
REGISTER(v_cvt_sr_bf16_f32, stochastic_to_half<true>, 2);
REGISTER(v_cvt_sr_f16_f32, stochastic_to_half<false>, 2);

UNARY(v_cvt_f32_bf16, U, a << 16);

SIM_INLINE u32 next_random(u32 x) { return x << 1 ^ (x >> 31 ? 197u : 0u); }
UNARY(v_prng_b32, U, (a << 1) ^ ((U)((I)a >> 31) & 197u));

// ---- scaled conversions (v_cvt_scalef32_*). Small floats stand for multiples of the scale, the
// power of two in the exponent of an f32.
// src[0], src[1]: data; src[2]: random bits; src[3]: scale. imm: source format | destination
// format << 4 | elements << 8 | kStochastic; aux: bit offset in the source row;
// flags: bit offset in the destination row.
enum Element : u32 { kF32 = 8, kF16, kBf16 };
constexpr u32 kStochastic = 1 << 16;
constexpr u32 kMaxRows = 32;

SIM_INLINE int bits_of(u32 element) {
  if (element < kF32) return small::kBits[element];
  return element == kF32 ? 32 : 16;
}

SIM_INLINE u32 get_bits(const u32* rows, int lane, u32 offset, int count) {
  const u32 word = offset / 32, shift = offset % 32;
  u64 bits = rows[kLanes * word + lane];
  if (shift + count > 32) bits |= (u64)rows[kLanes * (word + 1) + lane] << 32;
  return (u32)(bits >> shift) & (u32)((1ull << count) - 1);
}

SIM_INLINE void put_bits(u32* rows, int lane, u32 offset, int count, u32 value) {
  const u32 word = offset / 32, shift = offset % 32;
  const u64 mask = ((1ull << count) - 1) << shift, bits = (u64)value << shift;
  u32* low = &rows[kLanes * word + lane];
  *low = (*low & ~(u32)mask) | (u32)bits;
  if (mask >> 32) low[kLanes] = (low[kLanes] & ~(u32)(mask >> 32)) | (u32)(bits >> 32);
}

SIM_INLINE double decode_element(u32 bits, u32 element) {
  if (element < kF32) return small::decode(bits, (Format)element);
  if (element == kF32) return as_f32(bits);
  return element == kF16 ? half_to_float(bits) : as_f32(bits << 16);
}

SIM_INLINE u32 encode_element(double x, u32 element, bool saturate) {
  if (element < kF32) return small::encode(x, (Format)element, saturate);
  if (element == kF32) return as_u32((float)x);
  return element == kF16 ? to_f16((float)x) : to_bf16((float)x);
}

const Inst* scale_convert(Wave& wave, const Inst* inst) {
  const u32 from = inst->imm & 15, to = inst->imm >> 4 & 15, count = inst->imm >> 8 & 255;
  const bool stochastic = inst->imm & kStochastic;
  const int from_bits = bits_of(from), to_bits = bits_of(to);
  const bool saturate = saturates(wave);
  RowPair spaces[2];
  const u32* data[2];
  for (int i = 0; i < 2; i++) {
    data[i] = inst->src[i].space == kNone ? nullptr : source(wave, inst->src[i], *(Row*)&spaces[i]);
  }
  Row random_row, scale_row;
  const u32* random = stochastic ? source(wave, inst->src[2], random_row) : nullptr;
  const u32* scales = source(wave, inst->src[3], scale_row);
  alignas(64) u32 result[kMaxRows * kLanes];
  const u32 rows = (inst->flags + count * to_bits + 31) / 32;
  u32* dst = wave.regs + inst->dst;
  memcpy(result, dst, rows * sizeof(Row));  // keeps the bits that are not written
  for (int l = 0; l < kLanes; l++) {
    const int exponent = scales[l] >> 23 & 255;
    const int power = (to < kF32 ? -1 : 1) * (exponent - 127);
    u32 noise = stochastic ? random[l] : 0;
    for (u32 e = 0; e < count; e++) {
      const u32* rows_of = data[1] && e % 2 ? data[1] : data[0];
      const u32 place = data[1] ? e / 2 : e;
      const u32 bits = get_bits(rows_of, l, inst->aux + place * from_bits, from_bits);
      const double value = exponent == 255 ? NAN : std::ldexp(decode_element(bits, from), power);
      u32 out;
      if (stochastic) {
        out = small::encode_stochastic((float)value, noise, (Format)to, saturate);
        noise = next_random(noise);
      } else {
        out = encode_element(value, to, saturate);
      }
      put_bits(result, l, inst->flags + e * to_bits, to_bits, out);
    }
  }
  for (u32 r = 0; r < rows; r++) {
    store_row(wave.exec(), dst + kLanes * r, result + kLanes * r);
  }
  return inst + 1;
}
REGISTER(scale_convert, scale_convert, 4);

}  // namespace
