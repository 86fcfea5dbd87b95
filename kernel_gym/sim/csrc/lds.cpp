// LDS instructions. aux: byte offset; imm: second offset of the two-address forms.
#include "audit.h"
#include "memory.h"
#include "recorder.h"

bool check_lds(Wave& wave, const Inst* inst, const u32* addresses, u64 lanes, u32 offset,
               u32 size) {
  u64 good = 0;
  const u64 room = (u64)wave.lds_size - offset - size;
  if ((u64)offset + size <= wave.lds_size) {
    for (int c = 0; c < kChunks; c++) {
      good |= to_bits((I)(load(addresses, c) <= (u32)room), c);
    }
  }
  const u64 bad = lanes & ~good;
  if (LIKELY(!bad)) {
    return LIKELY(wave.audit == nullptr) ||
           wave.audit->lds(wave, inst, addresses, lanes, offset, size);
  }
  const int l = __builtin_ctzll(bad);
  raise_fault(wave, inst, FaultKind::kLdsOutOfBounds, l, (u64)addresses[l] + offset, size);
  return false;
}

namespace {

SIM_INLINE bool locate(Wave& wave, const Inst* inst, const u32* addresses, u32 offset, u32 size) {
  if (!check_lds(wave, inst, addresses, wave.exec(), offset, size)) return false;
  if (UNLIKELY(wave.recorder != nullptr)) {
    wave.recorder->lds(inst->index, addresses, wave.exec(), offset, size);
  }
  return true;
}

template <Kind kind>
SIM_INLINE void read_lanes(Wave& wave, u32* dst, const u32* addresses, u32 offset) {
  const u8* base = wave.lds + offset;
  const u64 exec = wave.exec();
#if defined(SIM_AVX512)
  // Reading 32 bits at a 16-bit place may pass the end by two bytes: LDS has padding for it.
  if constexpr (kind == Kind::kU16 || kind == Kind::kWords1) {
    for (int c = 0; c < kChunks; c++) {
      const __mmask16 mask = (__mmask16)(exec >> (16 * c));
      const __m512i index = (__m512i)load(addresses, c);
      __m512i value = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), mask, index, base, 1);
      if (kind == Kind::kU16) value = _mm512_and_si512(value, _mm512_set1_epi32(0xffff));
      store(exec, dst, c, (U)value);
    }
    return;
  }
#endif
  Row copy;  // the destination may overlap the addresses
  memcpy(copy.words, addresses, sizeof copy);
  load_lanes<kind>(exec, dst, [&](int l) { return base + copy.words[l]; });
}

template <Kind kind>
const Inst* ds_read(Wave& wave, const Inst* inst) {
  const u32* addresses = wave.regs + inst->src[0].index;
  if (!locate(wave, inst, addresses, inst->aux, size_of(kind))) return nullptr;
  read_lanes<kind>(wave, wave.regs + inst->dst, addresses, inst->aux);
  return inst + 1;
}

template <Kind kind>
const Inst* ds_write(Wave& wave, const Inst* inst) {
  const u32* addresses = wave.regs + inst->src[0].index;
  if (!locate(wave, inst, addresses, inst->aux, size_of(kind))) return nullptr;
  u8* base = wave.lds + inst->aux;
  const u32* rows = wave.regs + inst->src[2].index;
  store_lanes<kind>(wave.exec(), rows, [&](int l) { return base + addresses[l]; });
  return inst + 1;
}

template <Kind kind>
const Inst* ds_read2(Wave& wave, const Inst* inst) {
  Row addresses;
  memcpy(addresses.words, wave.regs + inst->src[0].index, sizeof addresses);
  if (!locate(wave, inst, addresses.words, inst->aux, size_of(kind))) return nullptr;
  if (!locate(wave, inst, addresses.words, inst->imm, size_of(kind))) return nullptr;
  u32* dst = wave.regs + inst->dst;
  read_lanes<kind>(wave, dst, addresses.words, inst->aux);
  read_lanes<kind>(wave, dst + kLanes * (size_of(kind) / 4), addresses.words, inst->imm);
  return inst + 1;
}

template <Kind kind>
const Inst* ds_write2(Wave& wave, const Inst* inst) {
  const u32* addresses = wave.regs + inst->src[0].index;
  if (!locate(wave, inst, addresses, inst->aux, size_of(kind))) return nullptr;
  if (!locate(wave, inst, addresses, inst->imm, size_of(kind))) return nullptr;
  const u32 offsets[2] = {inst->aux, inst->imm};
  for (int i = 0; i < 2; i++) {
    const u32* rows = wave.regs + inst->src[2 + i].index;
    u8* base = wave.lds + offsets[i];
    store_lanes<kind>(wave.exec(), rows, [&](int l) { return base + addresses[l]; });
  }
  return inst + 1;
}

// flags: operation | wide << 8 | returns << 9. For a compare-and-swap src[2] holds the compared
// value and src[3] the new one.
const Inst* ds_atomic(Wave& wave, const Inst* inst) {
  const Atomic op = (Atomic)(inst->flags & 0xff);
  const bool wide = inst->flags & 0x100, returns = inst->flags & 0x200;
  const u32 size = wide ? 8 : 4;
  Row addresses;
  memcpy(addresses.words, wave.regs + inst->src[0].index, sizeof addresses);
  if (!locate(wave, inst, addresses.words, inst->aux, size)) return nullptr;
  const bool compares = op == Atomic::kCompareSwap;
  const u32* first = wave.regs + inst->src[2].index;
  const u32* value = compares ? wave.regs + inst->src[3].index : first;
  u32* dst = wave.regs + inst->dst;
  for (u64 lanes = wave.exec(); lanes; lanes &= lanes - 1) {
    const int l = __builtin_ctzll(lanes);
    const u32 place = addresses.words[l] + inst->aux;
    if (place % size) return raise_fault(wave, inst, FaultKind::kMisaligned, l, place, size);
    if (wide) {
      u64* p = (u64*)(wave.lds + place);
      const u64 old = *p;
      *p = apply_atomic(op, old, pair(value, l), pair(first, l));
      if (returns) {
        dst[l] = (u32)old;
        dst[kLanes + l] = (u32)(old >> 32);
      }
    } else {
      u32* p = (u32*)(wave.lds + place);
      const u32 old = *p;
      *p = apply_atomic(op, old, value[l], first[l]);
      if (returns) dst[l] = old;
    }
  }
  wave.sync_operations += returns;
  return inst + 1;
}
REGISTER(ds_atomic, ds_atomic);

REGISTER(ds_read_b32, ds_read<Kind::kWords1>);
REGISTER(ds_read_b64, ds_read<Kind::kWords2>);
REGISTER(ds_read_b96, ds_read<Kind::kWords3>);
REGISTER(ds_read_b128, ds_read<Kind::kWords4>);
REGISTER(ds_read_u8, ds_read<Kind::kU8>);
REGISTER(ds_read_i8, ds_read<Kind::kI8>);
REGISTER(ds_read_u16, ds_read<Kind::kU16>);
REGISTER(ds_read_i16, ds_read<Kind::kI16>);
REGISTER(ds_read_u16_d16, ds_read<Kind::kLow16>);
REGISTER(ds_read_u16_d16_hi, ds_read<Kind::kHigh16>);
REGISTER(ds_read_u8_d16, ds_read<Kind::kU8Low>);
REGISTER(ds_read_u8_d16_hi, ds_read<Kind::kU8High>);
REGISTER(ds_read_i8_d16, ds_read<Kind::kI8Low>);
REGISTER(ds_read_i8_d16_hi, ds_read<Kind::kI8High>);
REGISTER(ds_write_b32, ds_write<Kind::kWords1>);
REGISTER(ds_write_b64, ds_write<Kind::kWords2>);
REGISTER(ds_write_b96, ds_write<Kind::kWords3>);
REGISTER(ds_write_b128, ds_write<Kind::kWords4>);
REGISTER(ds_write_b8, ds_write<Kind::kU8>);
REGISTER(ds_write_b16, ds_write<Kind::kU16>);
REGISTER(ds_write_b16_d16_hi, ds_write<Kind::kHigh16>);
REGISTER(ds_write_b8_d16_hi, ds_write<Kind::kU8High>);
REGISTER(ds_read2_b32, ds_read2<Kind::kWords1>);
REGISTER(ds_read2_b64, ds_read2<Kind::kWords2>);
REGISTER(ds_write2_b32, ds_write2<Kind::kWords1>);
REGISTER(ds_write2_b64, ds_write2<Kind::kWords2>);

}  // namespace
