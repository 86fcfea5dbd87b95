// Vector operations from graphics and video that compilers know by builtins: cube maps, sums of
// absolute differences, saturating packs; and the IEEE-754-2019 minimum and maximum.
#include <algorithm>

#include "ops/scalar_math.h"
#include "ops/sources.h"

namespace {

// ---- cube maps: S0, S1, S2 are x, y, z
template <class Op>
const Inst* cube(Wave& wave, const Inst* inst) {
  const u32* x = source(wave, inst->src[0], wave.spare[0]);
  const u32* y = source(wave, inst->src[1], wave.spare[1]);
  const u32* z = source(wave, inst->src[2], wave.spare[2]);
  Row result;
  for (int l = 0; l < kLanes; l++) {
    const float a = as_f32(x[l]), b = as_f32(y[l]), c = as_f32(z[l]);
    const bool z_major = std::fabs(c) >= std::fabs(a) && std::fabs(c) >= std::fabs(b);
    const int axis = z_major ? 2 : std::fabs(b) >= std::fabs(a) ? 1 : 0;
    result.words[l] = as_u32(Op::apply(axis, a, b, c));
  }
  store_row(wave.exec(), wave.regs + inst->dst, result.words);
  return inst + 1;
}
#define CUBE(name, expression)                                \
  struct name {                                               \
    static float apply(int axis, float x, float y, float z) { \
      const float major = axis == 2 ? z : axis == 1 ? y : x;  \
      (void)major;                                            \
      return expression;                                      \
    }                                                         \
  };                                                          \
  REGISTER(name, cube<name>, 3)
CUBE(v_cubeid_f32, (float)(2 * axis + (major < 0)));
CUBE(v_cubema_f32, major * 2.f);
CUBE(v_cubesc_f32, axis == 2 ? (z < 0 ? -x : x) : axis == 1 ? x : (x < 0 ? z : -z));
CUBE(v_cubetc_f32, axis == 1 ? (y < 0 ? -z : z) : -y);

// ---- sums of absolute differences of bytes
template <bool masked>
SIM_INLINE u32 byte_differences(u32 x, u32 y) {
  u32 sum = 0;
  for (int i = 0; i < 32; i += 8) {
    const u32 p = x >> i & 255, q = y >> i & 255;
    if (!masked || q) sum += p > q ? p - q : q - p;
  }
  return sum;
}

const Inst* v_msad_u8(Wave& wave, const Inst* inst) {
  const u32* a = source(wave, inst->src[0], wave.spare[0]);
  const u32* b = source(wave, inst->src[1], wave.spare[1]);
  const u32* c = source(wave, inst->src[2], wave.spare[2]);
  Row result;
  for (int l = 0; l < kLanes; l++) result.words[l] = byte_differences<true>(a[l], b[l]) + c[l];
  store_row(wave.exec(), wave.regs + inst->dst, result.words);
  return inst + 1;
}
REGISTER(v_msad_u8, v_msad_u8, 3);

// Four windows of S0, a byte apart, against S1; `wide` results are 32 bits each, else 16.
template <bool masked, bool wide>
const Inst* quad_differences(Wave& wave, const Inst* inst) {
  RowPair space;
  const u32* a = source64(wave, inst->src[0], space);
  const u32* b = source(wave, inst->src[1], wave.spare[0]);
  const u32* c = wave.regs + inst->src[2].index;
  alignas(64) u32 result[4 * kLanes] = {};
  for (int l = 0; l < kLanes; l++) {
    for (int i = 0; i < 4; i++) {
      const u32 sum = byte_differences<masked>((u32)(pair(a, l) >> (8 * i)), b[l]);
      if (wide) {
        result[kLanes * i + l] = sum + c[kLanes * i + l];
      } else {
        const u32 half = sum + (c[kLanes * (i / 2) + l] >> (16 * (i % 2)) & 0xffff);
        result[kLanes * (i / 2) + l] |= (half & 0xffff) << (16 * (i % 2));
      }
    }
  }
  for (int r = 0; r < (wide ? 4 : 2); r++) {
    store_row(wave.exec(), wave.regs + inst->dst + kLanes * r, result + kLanes * r);
  }
  return inst + 1;
}
REGISTER(v_qsad_pk_u16_u8, quad_differences<false, false>, 3);
REGISTER(v_mqsad_pk_u16_u8, quad_differences<true, false>, 3);
REGISTER(v_mqsad_u32_u8, quad_differences<true, true>, 3);

// ---- saturation to bytes
SIM_INLINE U clamp_bytes(I x, i32 low, i32 high) {
  const I raised = x < low ? I{} + low : x;
  return (U)(raised > high ? I{} + high : raised) & 0xffu;
}
UNARY(v_sat_pk_u8_i16, U, clamp_bytes(sext16(a), 0, 255) | clamp_bytes((I)a >> 16, 0, 255) << 8);
SIM_INLINE U shifted_pack(I a, I b, U shift, i32 low, i32 high) {
  const I by = (I)(shift & 31u);
  return clamp_bytes(a >> by, low, high) | clamp_bytes(b >> by, low, high) << 8;
}
TERNARY(v_ashr_pk_i8_i32, U, shifted_pack((I)a, (I)b, c, -128, 127));
TERNARY(v_ashr_pk_u8_i32, U, shifted_pack((I)a, (I)b, c, 0, 255));

// ---- f16 to normalised integers
template <bool is_signed>
const Inst* normalised(Wave& wave, const Inst* inst) {
  const u32* a = source(wave, inst->src[0], wave.spare[0]);
  Row result;
  for (int l = 0; l < kLanes; l++) {
    const float x = half_to_float(a[l]);
    const float low = is_signed ? -1.f : 0.f, scale = is_signed ? 32767.f : 65535.f;
    const float clamped = x != x ? 0.f : std::max(low, std::min(1.f, x));
    result.words[l] = (u16)(i32)std::nearbyint(clamped * scale);
  }
  store_row(wave.exec(), wave.regs + inst->dst, result.words);
  return inst + 1;
}
REGISTER(v_cvt_norm_i16_f16, normalised<true>, 1);
REGISTER(v_cvt_norm_u16_f16, normalised<false>, 1);

// A byte of the destination, chosen by src[1], the rest stays (src[2] is the destination).
const Inst* v_cvt_pkaccum_u8_f32(Wave& wave, const Inst* inst) {
  const u32* a = source(wave, inst->src[0], wave.spare[0]);
  const u32* b = source(wave, inst->src[1], wave.spare[1]);
  const u32* old = source(wave, inst->src[2], wave.spare[2]);
  Row result;
  for (int l = 0; l < kLanes; l++) {
    const u32 shift = 8 * (b[l] & 3), byte = std::min(255u, to_u32(std::nearbyint(as_f32(a[l]))));
    result.words[l] = (old[l] & ~(0xffu << shift)) | byte << shift;
  }
  store_row(wave.exec(), wave.regs + inst->dst, result.words);
  return inst + 1;
}
REGISTER(v_cvt_pkaccum_u8_f32, v_cvt_pkaccum_u8_f32, 3);

// ---- minimum and maximum that keep NaN
SIM_INLINE F with_nan(F a, F b, F result) {
  return (a != a) ? (F)((U)a | 0x400000u) : (b != b) ? (F)((U)b | 0x400000u) : result;
}
SIM_INLINE F minimum(F a, F b) { return with_nan(a, b, min_lanes(a, b)); }
SIM_INLINE F maximum(F a, F b) { return with_nan(a, b, max_lanes(a, b)); }
TERNARY(v_minimum3_f32, F, minimum(minimum(a, b), c));
TERNARY(v_maximum3_f32, F, maximum(maximum(a, b), c));
SIM_INLINE F lo(U a) { return half_lanes(a); }
SIM_INLINE F hi(U a) { return half_lanes(a >> 16); }
TERNARY(v_pk_minimum3_f16, U,
        pack16(to_half(minimum(minimum(lo(a), lo(b)), lo(c))),
               to_half(minimum(minimum(hi(a), hi(b)), hi(c)))));
TERNARY(v_pk_maximum3_f16, U,
        pack16(to_half(maximum(maximum(lo(a), lo(b)), lo(c))),
               to_half(maximum(maximum(hi(a), hi(b)), hi(c)))));

}  // namespace
