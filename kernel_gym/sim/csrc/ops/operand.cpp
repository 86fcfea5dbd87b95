// Operand modifiers (neg, abs, SDWA and half selection) and the result modifiers.
#include "ops/operand.h"

namespace {

SIM_INLINE U select_part(U x, u16 flags) {
  const u32 part = flags & kSelectMask;
  const bool sign = flags & kSignExtend;
  if (part == 0) return x;
  if (part <= 4) {
    const u32 shift = 8 * (part - 1);
    if (sign) return (U)((I)(x << (24 - shift)) >> 24);
    return (x >> shift) & 0xffu;
  }
  if (part == 5) return sign ? (U)sext16(x) : low16(x);
  return sign ? (U)((I)x >> 16) : x >> 16;
}

SIM_INLINE U modify(U x, u16 flags) {
  x = select_part(x, flags);
  if (flags & kSwizzle) {
    const U low = flags & kLowFromHigh ? x >> 16 : x;
    const U high = flags & kHighFromHigh ? x >> 16 : x;
    x = pack16(low, high);
  }
  if (flags & kFromHalf) x = (U)half_lanes(x);
  const u32 abs_bits = (flags & kAbs16 ? 0x8000u : 0u) | (flags & kAbs32 ? 0x80000000u : 0u);
  const u32 neg_bits = (flags & kNeg16 ? 0x8000u : 0u) | (flags & kNeg32 ? 0x80000000u : 0u);
  return (x & ~abs_bits) ^ neg_bits;
}

// The unmodified rows of an operand with modifiers.
const u32* plain_rows(const Wave& wave, const Operand& operand, u32* out, int rows) {
  const u8 kind = operand.space & ~kModified;
  if (kind == kVector) return wave.regs + operand.index;
  if (kind == kConstant) return wave.bases[kConstant] + operand.index;
  for (int r = 0; r < rows; r++) splat_row(out + kLanes * r, wave.scalars[operand.index + r]);
  return out;
}

}  // namespace

void modified_source(const Wave& wave, const Operand& operand, u32* out) {
  const u32* rows = plain_rows(wave, operand, out, 1);
  if (!(operand.flags & ~(kAbs32 | kNeg32))) {  // the usual case
    const u32 abs_bits = operand.flags & kAbs32 ? 0x80000000u : 0u;
    const u32 neg_bits = operand.flags & kNeg32 ? 0x80000000u : 0u;
    for (int c = 0; c < kChunks; c++) put(out, c, (load(rows, c) & ~abs_bits) ^ neg_bits);
    return;
  }
  for (int c = 0; c < kChunks; c++) put(out, c, modify(load(rows, c), operand.flags));
}

void modified_source64(const Wave& wave, const Operand& operand, u32* out) {
  const u32* rows = plain_rows(wave, operand, out, 2);
  const u32 abs_bits = operand.flags & kAbs32 ? 0x80000000u : 0u;
  const u32 neg_bits = operand.flags & kNeg32 ? 0x80000000u : 0u;
  for (int c = 0; c < kChunks; c++) {
    put(out, c, load(rows, c));
    put(out + kLanes, c, (load(rows + kLanes, c) & ~abs_bits) ^ neg_bits);
  }
}

const Inst* run_modified(Wave& wave, const Inst* inst, Handler handler, u32 count, u32 wide) {
  Inst copy = *inst;
  for (u32 i = 0; i < count; i++) {
    Operand& operand = copy.src[i];
    if (!(operand.space & kModified)) continue;
    u32* row = wave.spare[2 * i].words;
    if (wide >> i & 1) {
      modified_source64(wave, operand, row);
    } else {
      modified_source(wave, operand, row);
    }
    operand.index = (u32)(row - wave.regs);
    operand.space = kVector;
  }
  const bool single_step = wave.single_step;
  wave.single_step = true;  // no instruction follows the copy
  handler(wave, &copy);
  wave.single_step = single_step;
  return next(wave, inst);
}

namespace {

// ---- result modifiers. The instruction before wrote a temporary row (src[0]).

// Output scale and clamp to [0, 1] of f32, in place. imm: the scale's bits; aux: clamp?
const Inst* finish_f32(Wave& wave, const Inst* inst) {
  u32* row = wave.regs + inst->src[0].index;
  const float scale = as_f32(inst->imm);
  for (int c = 0; c < kChunks; c++) {
    F x = (F)load(row, c) * scale;
    if (inst->aux) x = min_lanes(max_lanes(x, F{}), splatf(1.f));
    store(wave.exec(), wave.regs + inst->dst, c, (U)x);
  }
  return next(wave, inst);
}
REGISTER(finish_f32, finish_f32);

const Inst* finish_f16(Wave& wave, const Inst* inst) {
  u32* row = wave.regs + inst->src[0].index;
  const float scale = as_f32(inst->imm);
  for (int c = 0; c < kChunks; c++) {
    F x = half_lanes(load(row, c)) * scale;
    if (inst->aux) x = min_lanes(max_lanes(x, F{}), splatf(1.f));
    store(wave.exec(), wave.regs + inst->dst, c, to_half(x));
  }
  return next(wave, inst);
}
REGISTER(finish_f16, finish_f16);

const Inst* finish_pk_f16(Wave& wave, const Inst* inst) {
  u32* row = wave.regs + inst->src[0].index;
  for (int c = 0; c < kChunks; c++) {
    const U x = load(row, c);
    const F low = min_lanes(max_lanes(half_lanes(x), F{}), splatf(1.f));
    const F high = min_lanes(max_lanes(half_lanes(x >> 16), F{}), splatf(1.f));
    store(wave.exec(), wave.regs + inst->dst, c, pack16(to_half(low), to_half(high)));
  }
  return next(wave, inst);
}
REGISTER(finish_pk_f16, finish_pk_f16);

const Inst* finish_f64(Wave& wave, const Inst* inst) {
  u32* rows = wave.regs + inst->src[0].index;
  u32* dst = wave.regs + inst->dst;
  const double scale = as_f32(inst->imm);
  for (int l = 0; l < kLanes; l++) {
    if (!(wave.exec() >> l & 1)) continue;
    double x = as_f64(pair(rows, l)) * scale;
    if (inst->aux) x = std::fmin(std::fmax(x, 0.0), 1.0);
    dst[l] = (u32)as_u64(x);
    dst[kLanes + l] = (u32)(as_u64(x) >> 32);
  }
  return next(wave, inst);
}
REGISTER(finish_f64, finish_f64);

// Writes part of the destination. imm: 0..3 byte, 4 low word, 5 high word; aux: the rest becomes
// zero (0), the sign (1), or is preserved (2).
const Inst* finish_part(Wave& wave, const Inst* inst) {
  const u32* row = wave.regs + inst->src[0].index;
  u32* dst = wave.regs + inst->dst;
  const bool byte = inst->imm < 4;
  const u32 shift = byte ? 8 * inst->imm : (inst->imm == 5 ? 16 : 0);
  const u32 mask = byte ? 0xffu : 0xffffu;
  const u32 top = byte ? 24 : 16;
  for (int c = 0; c < kChunks; c++) {
    const U x = load(row, c) & mask;
    const U old = load(dst, c);
    U result = x << shift;
    if (inst->aux == 1) result = (U)((I)(x << top) >> top) << shift;
    if (inst->aux == 2) result |= old & ~(mask << shift);
    store(wave.exec(), dst, c, result);
  }
  return next(wave, inst);
}
REGISTER(finish_part, finish_part);

}  // namespace
