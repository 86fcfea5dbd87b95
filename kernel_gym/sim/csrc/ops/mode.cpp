// The MODE register, and indexed vector registers. In kernels that change the mode, the host's own
// control register gets the rounding and denormals around single operations.
#include "wave.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

constexpr u32 kHostDefault = 0x1f80;  // MXCSR: nearest even, denormals kept, no exceptions

// The two rounding bits of MODE: nearest even, up, down, towards zero.
constexpr u32 kHostRounding[4] = {0x0000, 0x4000, 0x2000, 0x6000};
constexpr u32 kDenormalInputsAreZero = 0x40, kDenormalResultsAreZero = 0x8000;

// imm: 1 for operations on f32 (their rounding and denormals), 0 for those on f64 and f16.
const Inst* mode_begin(Wave& wave, const Inst* inst) {
#if defined(__x86_64__)
  u32 control = kHostDefault | kHostRounding[wave.mode >> (inst->imm ? 0 : 2) & 3];
  const u32 kept = inst->imm ? wave.mode >> 4 & 3 : 3;
  if (!(kept & 1)) control |= kDenormalInputsAreZero;
  if (!(kept & 2)) control |= kDenormalResultsAreZero;
  _mm_setcsr(control);
#else
  if (wave.mode != kDefaultMode) {
    return raise_fault(wave, inst, FaultKind::kUnsupported, 0, 0, 0);
  }
#endif
  return next(wave, inst);
}
const Inst* mode_end(Wave& wave, const Inst* inst) {
#if defined(__x86_64__)
  _mm_setcsr(kHostDefault);
#endif
  return next(wave, inst);
}
REGISTER(mode_begin, mode_begin);
REGISTER(mode_end, mode_end);

// Bits of MODE. imm: offset | width << 8; src[0]: the value; dst: scalar register
SIM_INLINE u32 field_mask(const Inst* inst) {
  const u32 width = inst->imm >> 8;
  return width >= 32 ? ~0u : (1u << width) - 1;
}
constexpr u32 kDenormalsOfHalf = 0xc0;
const Inst* set_mode(Wave& wave, const Inst* inst) {
  const u32 shift = inst->imm & 255, mask = field_mask(inst) << shift;
  const u32 value = wave.scalars[inst->src[0].index] << shift;
  wave.mode = (wave.mode & ~mask) | (value & mask);
  if ((wave.mode & kDenormalsOfHalf) != kDenormalsOfHalf) {
    return raise_fault(wave, inst, FaultKind::kUnsupported, 0, 0, 0);
  }
  return next(wave, inst);
}
const Inst* get_mode(Wave& wave, const Inst* inst) {
  wave.scalars[inst->dst] = wave.mode >> (inst->imm & 255) & field_mask(inst);
  return next(wave, inst);
}
REGISTER(set_mode, set_mode, 1);
REGISTER(get_mode, get_mode);

// ---- vector registers indexed by M0 (s_set_gpr_idx_*). aux: registers of the kernel.
// Reading past them gives register 0, writing past them nothing.
const Inst* indexed_read(Wave& wave, const Inst* inst) {
  const u32 index = inst->src[0].index / kLanes + (wave.scalars[kM0] & 255);
  memcpy(wave.regs + inst->dst, wave.regs + (index < inst->aux ? kLanes * index : 0), sizeof(Row));
  return next(wave, inst);
}
const Inst* indexed_write(Wave& wave, const Inst* inst) {
  const u32 index = inst->dst / kLanes + (wave.scalars[kM0] & 255);
  if (index < inst->aux) {
    store_row(wave.exec(), wave.regs + kLanes * index, wave.regs + inst->src[0].index);
  }
  return next(wave, inst);
}
// M0: index in bits 0-7, enabled operands (imm) in bits 12-15
const Inst* set_index(Wave& wave, const Inst* inst) {
  u32& m0 = wave.scalars[kM0];
  m0 = (m0 & ~0xffu) | (wave.scalars[inst->src[0].index] & 255);
  if (inst->aux) m0 = (m0 & ~0xf000u) | (inst->imm & 15) << 12;
  return next(wave, inst);
}
REGISTER(indexed_read, indexed_read, 1);
REGISTER(indexed_write, indexed_write, 1);
REGISTER(set_index, set_index, 1);

}  // namespace
