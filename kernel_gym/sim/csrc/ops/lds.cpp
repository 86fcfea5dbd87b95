// LDS instructions. aux: byte offset; imm: second offset of the two-address forms. The sum of address
// and offset wraps at 32 bits, on which compilers rely: they fold the positive part of an index into
// the offset of an address that is negative.
#include <algorithm>

#include "audit/audit.h"
#include "ops/access_check.h"
#include "ops/atomics.h"
#include "ops/movement.h"
#include "timing/recorder.h"

namespace {

// The lanes whose places are inside LDS.
SIM_INLINE u64 inside_lds(const Wave& wave, const u32* places, u32 size) {
  u64 inside = 0;
  if (size > wave.lds_size) return inside;
  for (int c = 0; c < kChunks; c++) {
    inside |= to_bits((I)(load(places, c) <= wave.lds_size - size), c);
  }
  return inside;
}

}  // namespace

bool check_lds(Wave& wave, const Inst* inst, const u32* places, u64 lanes, u32 size) {
  const u64 bad = lanes & ~inside_lds(wave, places, size);
  if (LIKELY(!bad)) {
    return LIKELY(wave.audit == nullptr) || wave.audit->lds(wave, inst, places, lanes, size);
  }
  const int l = __builtin_ctzll(bad);
  raise_fault(wave, inst, FaultKind::kLdsOutOfBounds, l, places[l], size);
  return false;
}

void lds_places(const u32* addresses, u32 offset, Row& out) {
  for (int c = 0; c < kChunks; c++) {
    store(kAllLanes, out.words, c, load(addresses, c) + splat(offset));
  }
}

bool locate_lds(Wave& wave, const Inst* inst, const u32* places, u32 size) {
  if (!check_lds(wave, inst, places, wave.exec(), size)) return false;
  if (UNLIKELY(wave.recorder != nullptr)) {
    wave.recorder->lds(wave.number, inst->index, places, wave.exec(), size);
  }
  return true;
}

namespace {

// As locate_lds, for plain reads and writes. Where accesses outside are tolerated, the lanes outside
// are noted and left out of `lanes`: they read zeros, and their writes are dropped, as on a GPU.
SIM_INLINE bool locate_inside(Wave& wave, const Inst* inst, const u32* places, u32 size,
                              u64& lanes) {
  lanes = wave.exec();
  if (LIKELY(wave.memory->margin == 0)) return locate_lds(wave, inst, places, size);
  const u64 bad = lanes & ~inside_lds(wave, places, size);
  if (bad) {
    const int l = __builtin_ctzll(bad);
    note_outside(wave, inst, FaultKind::kLdsOutOfBounds, l, places[l], size);
    lanes &= ~bad;
  }
  if (!check_lds(wave, inst, places, lanes, size)) return false;
  if (UNLIKELY(wave.recorder != nullptr)) {
    wave.recorder->lds(wave.number, inst->index, places, lanes, size);
  }
  return true;
}

// Whether all lanes are active and those of each chunk are adjacent in LDS. False if an audit or
// the timing model needs the address of each lane.
template <u32 size>
SIM_INLINE bool locate_chunks(Wave& wave, const u32* addresses, u32 offset) {
  if (wave.exec() != kAllLanes || wave.recorder || wave.audit) return false;
  if (!ascending_chunks<size>(addresses)) return false;
  u32 last = addresses[0];
  for (int c = 1; c < kChunks; c++) last = std::max(last, addresses[kWidth * c]);
  return (u64)last + offset + kWidth * size <= wave.lds_size;
}

// Reads from one of the places of an instruction; false after a fault. The destination may overlap
// the addresses.
template <Kind kind>
SIM_INLINE bool read_place(Wave& wave, const Inst* inst, u32* dst, const u32* addresses,
                           u32 offset) {
  if (locate_chunks<size_of(kind)>(wave, addresses, offset)) {
    const u8* base = wave.lds + offset;
    u32 first[kChunks];
    for (int c = 0; c < kChunks; c++) first[c] = addresses[kWidth * c];
    for (int c = 0; c < kChunks; c++) load_chunk_dense<kind>(dst, c, base + first[c]);
    return true;
  }
  Row places;
  lds_places(addresses, offset, places);
  u64 inside;
  if (!locate_inside(wave, inst, places.words, size_of(kind), inside)) return false;
  if (UNLIKELY(inside != wave.exec())) {
    load_lanes<kind>(wave.exec(), dst, [&](int l) -> const u8* {
      return inside >> l & 1 ? wave.lds + places.words[l] : kNothing;
    });
    return true;
  }
#if defined(SIM_AVX512)
  // A 32-bit read of a smaller value may pass the end. LDS has padding for that.
  if constexpr (!is_words(kind)) {
    const u64 exec = wave.exec();
    const auto place = [&](int l) { return exec >> l & 1 ? wave.lds + places.words[l] : kNothing; };
    for (int c = 0; c < kChunks; c++) {
      const U x = collect_words(c, place) & (size_of(kind) == 2 ? 0xffffu : 0xffu);
      store(exec, dst, c, widened(kind, x, load(dst, c)));
    }
    return true;
  }
#endif
  load_lanes<kind>(wave.exec(), dst, [&](int l) { return wave.lds + places.words[l]; });
  return true;
}

template <Kind kind>
SIM_INLINE bool write_place(Wave& wave, const Inst* inst, const u32* rows, const u32* addresses,
                            u32 offset) {
  if (locate_chunks<size_of(kind)>(wave, addresses, offset)) {
    u8* base = wave.lds + offset;
    for (int c = 0; c < kChunks; c++) {
      store_chunk_dense<kind>(rows, c, base + addresses[kWidth * c]);
    }
    return true;
  }
  Row places;
  lds_places(addresses, offset, places);
  u64 inside;
  if (!locate_inside(wave, inst, places.words, size_of(kind), inside)) return false;
  store_lanes<kind>(inside, rows, [&](int l) { return wave.lds + places.words[l]; });
  return true;
}

template <Kind kind>
const Inst* ds_read(Wave& wave, const Inst* inst) {
  const u32* addresses = wave.regs + inst->src[0].index;
  const bool done = read_place<kind>(wave, inst, wave.regs + inst->dst, addresses, inst->aux);
  return done ? next(wave, inst) : nullptr;
}

template <Kind kind>
const Inst* ds_write(Wave& wave, const Inst* inst) {
  const u32* addresses = wave.regs + inst->src[0].index;
  const u32* rows = wave.regs + inst->src[2].index;
  return write_place<kind>(wave, inst, rows, addresses, inst->aux) ? next(wave, inst) : nullptr;
}

template <Kind kind>
const Inst* ds_read2(Wave& wave, const Inst* inst) {
  u32* addresses = wave.spare[0].words;
  memcpy(addresses, wave.regs + inst->src[0].index, sizeof(Row));
  u32* dst = wave.regs + inst->dst;
  const bool done =
      read_place<kind>(wave, inst, dst, addresses, inst->aux) &&
      read_place<kind>(wave, inst, dst + kLanes * (size_of(kind) / 4), addresses, inst->imm);
  return done ? next(wave, inst) : nullptr;
}

template <Kind kind>
const Inst* ds_write2(Wave& wave, const Inst* inst) {
  const u32* addresses = wave.regs + inst->src[0].index;
  const u32* first = wave.regs + inst->src[2].index;
  const u32* second = wave.regs + inst->src[3].index;
  const bool done = write_place<kind>(wave, inst, first, addresses, inst->aux) &&
                    write_place<kind>(wave, inst, second, addresses, inst->imm);
  return done ? next(wave, inst) : nullptr;
}

// flags: operation | wide << 8 | returns << 9. For a compare-and-swap src[2] holds the compared
// value and src[3] the new one.
const Inst* ds_atomic(Wave& wave, const Inst* inst) {
  const Atomic op = (Atomic)(inst->flags & 0xff);
  const bool wide = inst->flags & 0x100, returns = inst->flags & 0x200;
  const u32 size = wide ? 8 : 4;
  Row places;
  lds_places(wave.regs + inst->src[0].index, inst->aux, places);
  if (!locate_lds(wave, inst, places.words, size)) return nullptr;
  const bool compares = op == Atomic::kCompareSwap;
  const u32* first = wave.regs + inst->src[2].index;
  const u32* value = compares ? wave.regs + inst->src[3].index : first;
  u32* dst = wave.regs + inst->dst;
  for (u64 lanes = wave.exec(); lanes; lanes &= lanes - 1) {
    const int l = __builtin_ctzll(lanes);
    const u32 place = places.words[l];
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
  return next(wave, inst);
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
