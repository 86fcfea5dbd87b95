// Operations that move values between lanes: DPP, permutes, swizzles, lane reads and writes.
#include "ops/operand.h"

namespace {

// ---- DPP. A pre-operation fills a temporary row and narrows EXEC, a post-operation restores it.
enum DppControl : u32 {
  kQuadPerm,
  kRowShl,
  kRowShr,
  kRowRor,
  kWaveShl,
  kWaveRol,
  kWaveShr,
  kWaveRor,
  kRowMirror,
  kRowHalfMirror,
  kRowBcast15,
  kRowBcast31,
  kRowNewBcast,
  kDppControls,
};

struct DppPattern {
  u64 valid;  // lanes whose source lane exists
  alignas(64) u32 lanes[kLanes];
};

// The source lane of lane `l`, or -1.
int dpp_source(int l, u32 control, int arg) {
  const int row = l & ~15, position = l & 15;
  switch (control) {
    case kQuadPerm:
      return (l & ~3) | ((arg >> (2 * (l & 3))) & 3);
    case kRowShl:
      return position + arg < 16 ? l + arg : -1;
    case kRowShr:
      return position >= arg ? l - arg : -1;
    case kRowRor:
      return row | ((position - arg) & 15);
    case kWaveShl:
      return l + 1 < kLanes ? l + 1 : -1;
    case kWaveRol:
      return (l + 1) & 63;
    case kWaveShr:
      return l - 1;
    case kWaveRor:
      return (l - 1) & 63;
    case kRowMirror:
      return row | (15 - position);
    case kRowHalfMirror:
      return (l & ~7) | (7 - (l & 7));
    case kRowBcast15:
      return row - 1;
    case kRowBcast31:
      return l >= 32 ? 31 : -1;
    default:
      return row | (arg & 15);
  }
}

struct DppPatterns {
  DppPattern patterns[kDppControls][256];
  DppPatterns() {
    for (u32 control = 0; control < kDppControls; control++) {
      for (int arg = 0; arg < 256; arg++) fill(patterns[control][arg], control, arg);
    }
  }
  static void fill(DppPattern& pattern, u32 control, int arg) {
    pattern.valid = 0;
    for (int l = 0; l < kLanes; l++) {
      const int from = dpp_source(l, control, arg);
      pattern.lanes[l] = from < 0 ? l : from;
      pattern.valid |= (u64)(from >= 0) << l;
    }
  }
};

const DppPatterns kDppPatterns;

// The bit of lane `lanes[l]` for every lane l.
SIM_INLINE u64 moved_bits(u64 bits, const u32* lanes) {
  u64 result = 0;
  for (int c = 0; c < kChunks; c++) {
    const U from = load(lanes, c);
    const U half = select((I)(from < 32u), splat((u32)bits), splat((u32)(bits >> 32)));
    result |= to_bits((I)((half >> (from & 31u) & 1u) != 0u), c);
  }
  return result;
}

// out[l] = data[lanes[l]] where `live` has a bit, else 0; `out` may be `data` or `lanes`.
SIM_INLINE void move_lanes(u32* out, const u32* data, const u32* lanes, u64 live) {
#if defined(SIM_AVX512)
  const __m512i d0 = (__m512i)load(data, 0), d1 = (__m512i)load(data, 1);
  const __m512i d2 = (__m512i)load(data, 2), d3 = (__m512i)load(data, 3);
  for (int c = 0; c < kChunks; c++) {
    const __m512i from = (__m512i)load(lanes, c);  // the permutations look at five bits
    const __mmask16 upper = _mm512_test_epi32_mask(from, _mm512_set1_epi32(32));
    const __m512i low = _mm512_permutex2var_epi32(d0, from, d1);
    const __m512i high = _mm512_permutex2var_epi32(d2, from, d3);
    const __m512i moved = _mm512_mask_blend_epi32(upper, low, high);
    put(out, c, (U)_mm512_maskz_mov_epi32((__mmask16)(live >> (16 * c)), moved));
  }
#else
  Row result;
  for (int l = 0; l < kLanes; l++) result.words[l] = live >> l & 1 ? data[lanes[l]] : 0;
  memcpy(out, result.words, sizeof result);
#endif
}

// Lanes enabled by row_mask and bank_mask: a bit for each bank of 4 lanes becomes four.
SIM_INLINE u64 enabled_lanes(u32 banks) {
  if (LIKELY(banks == 0xffff)) return kAllLanes;
  u64 lanes = 0;
  for (int bank = 0; bank < 16; bank++) lanes |= (u64)(banks >> bank & 1) << (4 * bank);
  return lanes * 15;
}

// imm: control | argument << 8 | bound_ctrl << 16; aux: lanes enabled by row_mask and bank_mask,
// 16 bits, a bit for each bank of 4 lanes.
const Inst* dpp_begin(Wave& wave, const Inst* inst) {
  if (has_modifiers(inst, 1)) return run_modified(wave, inst, dpp_begin, 1);
  const u32* a = source(wave, inst->src[0], wave.spare[0]);
  u32* temporary = wave.regs + inst->dst;  // never a source
  const DppPattern& pattern = kDppPatterns.patterns[inst->imm & 0xff][inst->imm >> 8 & 0xff];
  const u64 exec = wave.exec();
  u64 live = pattern.valid;
  if (exec != kAllLanes) live &= moved_bits(exec, pattern.lanes);
  move_lanes(temporary, a, pattern.lanes, live);
  const u64 enabled = enabled_lanes(inst->aux);
  const bool bound_ctrl = inst->imm >> 16;
  wave.saved_exec = exec;
  wave.exec() = exec & (bound_ctrl ? enabled : enabled & live);
  return next(wave, inst);
}
REGISTER(dpp_begin, dpp_begin);

const Inst* dpp_end(Wave& wave, const Inst* inst) {
  wave.exec() = wave.saved_exec;
  return next(wave, inst);
}
REGISTER(dpp_end, dpp_end);

// ---- LDS-crossbar permutes (no memory is touched); aux: byte offset
const Inst* ds_bpermute_b32(Wave& wave, const Inst* inst) {
  const u32* address = wave.regs + inst->src[0].index;
  const u32* data = wave.regs + inst->src[1].index;
  const u64 exec = wave.exec();
  u32* lanes = wave.spare[0].words;
  for (int c = 0; c < kChunks; c++) put(lanes, c, (load(address, c) + inst->aux) >> 2 & 63u);
  const u64 live = exec == kAllLanes ? kAllLanes : moved_bits(exec, lanes);
  move_lanes(lanes, data, lanes, live);
  store_row(exec, wave.regs + inst->dst, lanes);
  return next(wave, inst);
}
REGISTER(ds_bpermute_b32, ds_bpermute_b32);

const Inst* ds_permute_b32(Wave& wave, const Inst* inst) {
  Row result = {};
  const u32* address = wave.regs + inst->src[0].index;
  const u32* data = wave.regs + inst->src[1].index;
  const u64 exec = wave.exec();
  for (int l = 0; l < kLanes; l++) {
    if (exec >> l & 1) result.words[((address[l] + inst->aux) >> 2) & 63] = data[l];
  }
  store_row(exec, wave.regs + inst->dst, result.words);
  return next(wave, inst);
}
REGISTER(ds_permute_b32, ds_permute_b32);

u32 swizzle_source(u32 l, u32 pattern) {
  if (pattern >= 0xe000) return l;  // FFT mode: not used by compilers
  if (pattern >= 0xc000) {          // rotation within 32 lanes
    const u32 keep = pattern & 31, amount = (pattern >> 5) & 31;
    const u32 moved = pattern >> 10 & 1 ? l - amount : l + amount;
    return (l & 32) | (l & keep & 31) | (moved & ~keep & 31);
  }
  if (pattern & 0x8000) return (l & ~3u) | ((pattern >> (2 * (l & 3))) & 3);
  const u32 and_mask = pattern & 31, or_mask = (pattern >> 5) & 31, xor_mask = (pattern >> 10) & 31;
  return (l & 32) | ((((l & 31) & and_mask) | or_mask) ^ xor_mask);
}

const Inst* ds_swizzle_b32(Wave& wave, const Inst* inst) {
  const u32* data = wave.regs + inst->src[0].index;
  const u64 exec = wave.exec();
  u32* lanes = wave.spare[0].words;
  for (u32 l = 0; l < kLanes; l++) lanes[l] = swizzle_source(l, inst->aux);
  move_lanes(lanes, data, lanes, moved_bits(exec, lanes));
  store_row(exec, wave.regs + inst->dst, lanes);
  return next(wave, inst);
}
REGISTER(ds_swizzle_b32, ds_swizzle_b32);

// ---- scalar and vector registers
const Inst* v_readfirstlane_b32(Wave& wave, const Inst* inst) {
  const u32* a = source(wave, inst->src[0], wave.spare[0]);
  const u64 exec = wave.exec();
  wave.scalars[inst->dst] = a[exec ? __builtin_ctzll(exec) : 0];
  return next(wave, inst);
}
REGISTER(v_readfirstlane_b32, v_readfirstlane_b32);

const Inst* v_readlane_b32(Wave& wave, const Inst* inst) {
  const u32* a = source(wave, inst->src[0], wave.spare[0]);
  wave.scalars[inst->dst] = a[wave.scalars[inst->src[1].index] & 63];
  return next(wave, inst);
}
REGISTER(v_readlane_b32, v_readlane_b32);

const Inst* v_writelane_b32(Wave& wave, const Inst* inst) {
  const u32 lane = wave.scalars[inst->src[1].index] & 63;
  wave.regs[inst->dst + lane] = wave.scalars[inst->src[0].index];
  return next(wave, inst);
}
REGISTER(v_writelane_b32, v_writelane_b32);

const Inst* v_swap_b32(Wave& wave, const Inst* inst) {
  u32* a = wave.regs + inst->dst;
  u32* b = wave.regs + inst->src[0].index;
  const u64 exec = wave.exec();
  for (int c = 0; c < kChunks; c++) {
    const U x = load(a, c), y = load(b, c);
    store(exec, a, c, y);
    store(exec, b, c, x);
  }
  return next(wave, inst);
}
REGISTER(v_swap_b32, v_swap_b32);

// Exchanges `half` lanes of the first register's upper halves with the second's lower halves.
template <int half>
const Inst* permlane_swap(Wave& wave, const Inst* inst) {
  u32* a = wave.regs + inst->dst;
  u32* b = wave.regs + inst->src[0].index;
  const u64 exec = wave.exec();
  for (int l = 0; l < kLanes; l++) {
    if (l & half) continue;
    const u32 high = a[l + half], low = b[l];
    if (exec >> (l + half) & 1) a[l + half] = low;
    if (exec >> l & 1) b[l] = high;
  }
  return next(wave, inst);
}
REGISTER(v_permlane16_swap_b32, permlane_swap<16>, 1);
REGISTER(v_permlane32_swap_b32, permlane_swap<32>, 1);

}  // namespace
