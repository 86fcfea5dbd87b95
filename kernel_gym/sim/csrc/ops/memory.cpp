// Global, buffer, scratch and flat memory instructions.
#include <algorithm>

#include "audit/audit.h"
#include "ops/access_check.h"
#include "ops/atomics.h"
#include "ops/movement.h"
#include "timing/footprint.h"
#include "timing/recorder.h"
#include "timing/sharing.h"

// Flat addresses with these upper halves name LDS and scratch.
constexpr u32 kSharedAperture = 0x10000;
constexpr u32 kPrivateAperture = 0x20000;

namespace {

// ---- addresses.
// src[0]: vector address or offset; src[1]: scalar base or buffer resource; src[2]: stored data;
// src[3]: buffer index; dst2: scalar offset of buffers; imm: signed byte offset.
enum class Mode { kGlobal, kBuffer, kScratch, kFlat };

struct Access {
  alignas(64) u64 addresses[kLanes];
  u64 lanes;     // lanes that touch memory
  u64 outside;   // active lanes that the range check of a buffer disabled
  u64 partial;   // those of them of which some words are in range
  u64 words[4];  // lanes of `partial` by word: a load or store of words is checked word by word
};

SIM_INLINE void global_addresses(Wave& wave, const Inst* inst, Access& access) {
  const u32* rows = wave.regs + inst->src[0].index;
  const i64 offset = (i32)inst->imm;
  access.lanes = wave.exec();
  access.outside = access.partial = 0;
  if (inst->src[1].space == kScalar) {
    const u64 base = read64(wave.scalars, inst->src[1].index) + (u64)offset;
    for (int l = 0; l < kLanes; l++) access.addresses[l] = base + rows[l];
  } else {
    for (int l = 0; l < kLanes; l++) access.addresses[l] = pair(rows, l) + (u64)offset;
  }
}

// The lanes of which `size` bytes at the offset lie in a buffer without structures.
SIM_INLINE u64 raw_in_range(const u32* offsets, u32 imm, u32 records, u64 taken) {
  u64 in_range = 0;
  const U last = splat((u32)(records - taken));
  for (int c = 0; c < kChunks && taken <= records; c++) {
    in_range |= to_bits((I)(load(offsets, c) + imm <= last), c);
  }
  return in_range;
}

// The lanes of which `size` bytes lie in a structure of a buffer.
SIM_INLINE u64 structured_in_range(const u32* offsets, const u32* indices, u32 imm, u32 records,
                                   u64 stride, u32 size) {
  u64 in_range = 0;
  for (int l = 0; l < kLanes; l++) {
    const u64 end = (u64)(u32)(offsets[l] + imm) + size;
    in_range |= (u64)(indices[l] < records && end <= stride) << l;
  }
  return in_range;
}

// The vector offset plus the immediate wraps at 32 bits before the range check: compilers fold
// constants out of offsets that may be negative. `by_words`: a load or store of several words,
// of which each is checked (the ISA's notes on range checks); others are in range as a whole.
SIM_INLINE void buffer_addresses(Wave& wave, const Inst* inst, Access& access, u32 size,
                                 bool by_words) {
  const u32* resource = wave.scalars + inst->src[1].index;
  const u64 base = resource[0] | ((u64)(resource[1] & 0xffff) << 32);
  const u32 stride = (resource[1] >> 16) & 0x3fff;
  const u32 records = resource[2];
  const u32 scalar_offset = wave.scalars[inst->dst2];
  const bool has_offset = inst->src[0].space == kVector;
  const bool has_index = inst->src[3].space == kVector;
  Row zero = {};
  const u32* offsets = has_offset ? wave.regs + inst->src[0].index : zero.words;
  const u32* indices = has_index ? wave.regs + inst->src[3].index : zero.words;
  const u64 start = base + scalar_offset;
  for (int l = 0; l < kLanes; l++) access.addresses[l] = start + (u32)(offsets[l] + inst->imm);
  for (int l = 0; l < kLanes && stride; l++) access.addresses[l] += (u64)indices[l] * stride;
  const u64 end = has_offset ? stride : ~0ull;  // of a structure
  const auto in_range = [&](u32 bytes) {
    return stride ? structured_in_range(offsets, indices, inst->imm, records, end, bytes)
                  : raw_in_range(offsets, inst->imm, records, (u64)bytes + scalar_offset);
  };
  const u64 whole = in_range(size);
  access.lanes = wave.exec() & whole;
  access.outside = wave.exec() & ~whole;
  access.partial = by_words && access.outside ? access.outside & in_range(4) : 0;
  if (LIKELY(!access.partial)) return;
  for (u32 w = 0; w < 4; w++) {
    access.words[w] = 4 * w < size ? access.partial & in_range(4 * w + 4) : 0;
  }
}

// Converts scratch addresses to addresses in this process; false after a fault.
SIM_INLINE bool scratch_addresses(Wave& wave, const Inst* inst, Access& access, u32 size,
                                  bool write) {
  const bool has_offset = inst->src[0].space == kVector;
  const u32 base = inst->src[1].space == kScalar ? wave.scalars[inst->src[1].index] : 0;
  access.lanes = wave.exec();
  access.outside = access.partial = 0;
  for (u64 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const int l = __builtin_ctzll(lanes);
    const u32 vector = has_offset ? wave.regs[inst->src[0].index + l] : 0;
    const u32 offset = vector + base + inst->imm;
    if ((u64)offset + size > wave.scratch_size) {
      raise_fault(wave, inst, write ? FaultKind::kOutOfBoundsWrite : FaultKind::kOutOfBoundsRead, l,
                  ((u64)kPrivateAperture << 32) + offset, size);
      return false;
    }
    access.addresses[l] = (u64)wave.scratch + (u64)l * wave.scratch_size + offset;
  }
  return true;
}

// Resolves a flat address into LDS or scratch; 0 if it is neither, ~0 after a fault.
u64 resolve_aperture(Wave& wave, const Inst* inst, int lane, u64 address, u32 size, bool write) {
  const u32 aperture = (u32)(address >> 32), offset = (u32)address;
  if (aperture == kSharedAperture) {
    if ((u64)offset + size <= wave.lds_size) return (u64)wave.lds + offset;
    raise_fault(wave, inst, FaultKind::kLdsOutOfBounds, lane, offset, size);
    return ~0ull;
  }
  if (aperture != kPrivateAperture) return 0;
  if ((u64)offset + size <= wave.scratch_size) {
    return (u64)wave.scratch + (u64)lane * wave.scratch_size + offset;
  }
  raise_fault(wave, inst, write ? FaultKind::kOutOfBoundsWrite : FaultKind::kOutOfBoundsRead, lane,
              address, size);
  return ~0ull;
}

bool resolve_flat(Wave& wave, const Inst* inst, Access& access, u32 size, bool write) {
  u64 global_lanes = 0;
  alignas(64) u64 host[kLanes];
  for (u64 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const int l = __builtin_ctzll(lanes);
    host[l] = resolve_aperture(wave, inst, l, access.addresses[l], size, write);
    if (host[l] == ~0ull) return false;
    if (host[l] == 0) {
      global_lanes |= 1ull << l;
      host[l] = access.addresses[l];
    }
  }
  const u64 near = access.lanes & ~global_lanes;  // in LDS or scratch: they cost as scratch does
  if (near && wave.accounts) count_scratch(wave.accounts->all[inst->index], near, size, write);
  if (near && wave.recorder) {
    wave.recorder->scratch(wave.number, inst->index, near, size, write);
  }
  if (!check_global(wave, inst, access.addresses, global_lanes, size, write)) return false;
  if (UNLIKELY(wave.audit != nullptr) &&
      !wave.audit->global(wave, inst, access.addresses, global_lanes, size)) {
    return false;
  }
  memcpy(access.addresses, host, sizeof host);
  return true;
}

bool check_lanes(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size,
                 bool write) {
  if (!check_global(wave, inst, addresses, lanes, size, write)) return false;
  return LIKELY(wave.audit == nullptr) || wave.audit->global(wave, inst, addresses, lanes, size);
}

// Checks the words in range of lanes that a buffer's end divides; false after a fault.
bool check_words(Wave& wave, const Inst* inst, const Access& access, bool write) {
  alignas(64) u64 addresses[kLanes];
  for (u32 w = 0; w < 4; w++) {
    for (int l = 0; l < kLanes; l++) addresses[l] = access.addresses[l] + 4 * w;
    if (access.words[w] && !check_lanes(wave, inst, addresses, access.words[w], 4, write)) {
      return false;
    }
  }
  return true;
}

// Calls `each(word, lane, address)` for the words in range of lanes that a buffer's end divides.
template <class Each>
SIM_INLINE void for_words(const Access& access, Each each) {
  if (LIKELY(!access.partial)) return;
  for (u32 w = 0; w < 4; w++) {
    for (u64 lanes = access.words[w]; lanes; lanes &= lanes - 1) {
      const int l = __builtin_ctzll(lanes);
      each(w, l, access.addresses[l] + 4 * w);
    }
  }
}

SIM_INLINE void load_words(const Access& access, u32* rows) {
  for_words(access, [&](u32 w, int l, u64 address) {
    memcpy(rows + kLanes * w + l, (const u8*)address, 4);
  });
}

// Computes and checks the addresses of an instruction; false after a fault.
template <Mode mode>
SIM_INLINE bool locate(Wave& wave, const Inst* inst, Access& access, u32 size, bool write,
                       bool by_words) {
  if (mode == Mode::kScratch) {
    if (!scratch_addresses(wave, inst, access, size, write)) return false;
    if (wave.accounts) count_scratch(wave.accounts->all[inst->index], access.lanes, size, write);
    if (UNLIKELY(wave.recorder != nullptr)) {
      wave.recorder->scratch(wave.number, inst->index, access.lanes, size, write);
    }
    return true;
  }
  if (mode == Mode::kBuffer) {
    buffer_addresses(wave, inst, access, size, by_words);
    if (UNLIKELY(access.partial) && !check_words(wave, inst, access, write)) return false;
  } else {
    global_addresses(wave, inst, access);
  }
  if (mode == Mode::kFlat) return resolve_flat(wave, inst, access, size, write);
  return check_lanes(wave, inst, access.addresses, access.lanes, size, write);
}

// Whether an access of a kind is checked word by word.
constexpr bool by_words(Kind kind) { return is_words(kind) && size_of(kind) > 4; }

// ---- loads and stores. aux: counts as polling (a load that bypasses caches)
// The address of lane 0 if all lanes are active and adjacent in an allocation. 0 otherwise, and if
// an audit or the timing model needs the address of each lane.
template <Mode mode, u32 size>
SIM_INLINE u64 locate_dense(Wave& wave, const Inst* inst, bool write) {
  if (mode == Mode::kScratch || mode == Mode::kFlat || inst->src[0].space != kVector) return 0;
  if (wave.exec() != kAllLanes || wave.recorder || wave.audit || wave.sharing) return 0;
  const u32* rows = wave.regs + inst->src[0].index;
  if (!ascending<size>(rows)) return 0;
  u64 low;
  if (mode == Mode::kBuffer) {
    const u32* resource = wave.scalars + inst->src[1].index;
    const u32 scalar_offset = wave.scalars[inst->dst2];
    const u32 first = rows[0] + inst->imm;
    if (resource[1] >> 16 & 0x3fff || first >= ~0u - kLanes * size) return 0;
    if ((u64)first + kLanes * size + scalar_offset > resource[2]) return 0;
    low = (resource[0] | (u64)(resource[1] & 0xffff) << 32) + scalar_offset + first;
  } else if (inst->src[1].space == kScalar) {
    low = read64(wave.scalars, inst->src[1].index) + (u64)(i64)(i32)inst->imm + rows[0];
  } else {
    U differ = U{};
    for (int c = 0; c < kChunks; c++) differ |= load(rows + kLanes, c) ^ rows[kLanes];
    if (any_lane((U)(differ != 0u))) return 0;
    low = pair(rows, 0) + (u64)(i64)(i32)inst->imm;
  }
  const u64 high = low + kLanes * size;
  if (UNLIKELY(!inside(recent_region(wave, inst), low, high)) &&
      !enter_range(wave, inst, low, high, write)) {
    return 0;
  }
  if (wave.footprint) wave.footprint->mark(wave, low, high, write);
  if (wave.accounts) {
    count_dense(wave.accounts->all[inst->index], kLanes, high - low, low, high, write);
  }
  return low;
}

// Prefetches the memory after a dense access, which the next wave usually reads. A prefetch of
// unmapped memory does nothing.
template <u32 size>
SIM_INLINE void fetch_ahead(u64 low) {
  const u64 high = low + kLanes * size;
  for (u64 at = high; at < high + kLanes * size; at += 64) __builtin_prefetch((const void*)at);
}

// Prefetches the next access of this wave, or of the wave of its number in the next workgroup, if
// the stride stays the same. Into the L2 cache, because that may be a while off. Only where
// neighbouring lanes share lines: with more lines a prefetch is as slow as the access.
template <u32 size>
SIM_INLINE void fetch_next(Wave& wave, const Inst* inst, const Access& access) {
  const u64* addresses = access.addresses;
  if (access.lanes != kAllLanes || addresses[1] - addresses[0] != size) return;
  u64& last = wave.places[inst->index % kPlaces];
  const u64 step = addresses[0] - last;
  last = addresses[0];
  const u64 low = addresses[0] + step, high = addresses[kLanes - 1] + step + size;
  if (!step || !inside(recent_region(wave, inst), low, high)) return;
  for (u32 l = 0; l < kLanes; l += 64 / size) {
    __builtin_prefetch((const void*)(addresses[l] + step), 0, 2);
  }
}

// Whether all lanes are active and those of each chunk are adjacent.
template <u32 size>
SIM_INLINE bool in_chunks(const Access& access) {
  return access.lanes == kAllLanes && ascending_chunks<size>(access.addresses);
}

template <Mode mode, Kind kind>
const Inst* load_scattered(Wave& wave, const Inst* inst) {
  Access access;
  if (!locate<mode>(wave, inst, access, size_of(kind), false, by_words(kind))) return nullptr;
  fetch_next<size_of(kind)>(wave, inst, access);
  u32* dst = wave.regs + inst->dst;
  wave.sync_operations += inst->aux;
  if (in_chunks<size_of(kind)>(access)) {
    for (int c = 0; c < kChunks; c++) {
      load_chunk_dense<kind>(dst, c, (const u8*)access.addresses[kWidth * c]);
    }
    return inst + 1;
  }
  load_zeros<kind>(access.outside, dst);
  load_words(access, dst);
  load_lanes<kind>(access.lanes, dst, [&](int l) { return (const u8*)access.addresses[l]; });
  return inst + 1;
}

template <Mode mode, Kind kind>
const Inst* memory_load(Wave& wave, const Inst* inst) {
  const u64 first = locate_dense<mode, size_of(kind)>(wave, inst, false);
  if (!first) return load_scattered<mode, kind>(wave, inst);
  fetch_ahead<size_of(kind)>(first);
  load_dense<kind>(wave.regs + inst->dst, (const u8*)first);
  wave.sync_operations += inst->aux;
  return next(wave, inst);
}

template <Mode mode, Kind kind>
const Inst* store_scattered(Wave& wave, const Inst* inst) {
  Access access;
  if (!locate<mode>(wave, inst, access, size_of(kind), true, by_words(kind))) return nullptr;
  fetch_next<size_of(kind)>(wave, inst, access);
  const u32* rows = wave.regs + inst->src[2].index;
  if (in_chunks<size_of(kind)>(access)) {
    for (int c = 0; c < kChunks; c++) {
      store_chunk_dense<kind>(rows, c, (u8*)access.addresses[kWidth * c]);
    }
    return inst + 1;
  }
  store_lanes<kind>(access.lanes, rows, [&](int l) { return (u8*)access.addresses[l]; });
  for_words(access, [&](u32 w, int l, u64 address) {
    memcpy((u8*)address, rows + kLanes * w + l, 4);
  });
  return inst + 1;
}

template <Mode mode, Kind kind>
const Inst* memory_store(Wave& wave, const Inst* inst) {
  const u64 first = locate_dense<mode, size_of(kind)>(wave, inst, true);
  if (!first) return store_scattered<mode, kind>(wave, inst);
  fetch_ahead<size_of(kind)>(first);
  store_dense<kind>(wave.regs + inst->src[2].index, (u8*)first);
  return next(wave, inst);
}

// Loads that write LDS directly: the word of lane l goes to M0 + offset + 4 l.
template <Mode mode, Kind kind>
const Inst* memory_load_lds(Wave& wave, const Inst* inst) {
  Access access;
  if (!locate<mode>(wave, inst, access, size_of(kind), false, by_words(kind))) return nullptr;
  const u32 step = std::max(4u, size_of(kind));
  Row targets;
  const u32 base = (wave.scalars[kM0] & 0x3ffff) + inst->imm;
  for (int l = 0; l < kLanes; l++) targets.words[l] = base + step * l;
  if (!check_lds(wave, inst, targets.words, wave.exec(), step)) return nullptr;
  alignas(64) u32 rows[4 * kLanes] = {};
  load_lanes<kind>(access.lanes, rows, [&](int l) { return (const u8*)access.addresses[l]; });
  load_words(access, rows);
  constexpr Kind stored = is_words(kind) ? kind : Kind::kWords1;
  store_lanes<stored>(wave.exec(), rows, [&](int l) { return wave.lds + targets.words[l]; });
  return inst + 1;
}

// ---- atomics. flags: operation | wide << 8 | returns the old value << 9
template <class T>
void atomic_lane(Atomic op, u64 address, T value, T compare, T& old) {
  T* p = (T*)address;
  old = __atomic_load_n(p, __ATOMIC_RELAXED);
  T next;
  do {
    next = apply_atomic(op, old, value, compare);
  } while (!__atomic_compare_exchange_n(p, &old, next, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

template <Mode mode>
const Inst* memory_atomic(Wave& wave, const Inst* inst) {
  const Atomic op = (Atomic)(inst->flags & 0xff);
  const bool wide = inst->flags & 0x100, returns = inst->flags & 0x200;
  const u32 size = wide ? 8 : 4;
  Access access;
  if (!locate<mode>(wave, inst, access, size, true, false)) return nullptr;
  if (wave.accounts && mode != Mode::kScratch) {
    wave.accounts->atomics.add(access.addresses, access.lanes, wave.accounts->base);
  }
  const u32* data = wave.regs + inst->src[2].index;
  u32* dst = wave.regs + inst->dst;
  for (u64 lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const int l = __builtin_ctzll(lanes);
    const u64 address = access.addresses[l];
    if (address % size) return raise_fault(wave, inst, FaultKind::kMisaligned, l, address, size);
    if (wide) {
      u64 old;
      const u64 compare = op == Atomic::kCompareSwap ? pair(data + 2 * kLanes, l) : 0;
      atomic_lane<u64>(op, address, pair(data, l), compare, old);
      if (returns) {
        dst[l] = (u32)old;
        dst[kLanes + l] = (u32)(old >> 32);
      }
    } else {
      u32 old;
      const u32 compare = op == Atomic::kCompareSwap ? data[kLanes + l] : 0;
      atomic_lane<u32>(op, address, data[l], compare, old);
      if (returns) dst[l] = old;
    }
  }
  wave.sync_operations += returns;
  return inst + 1;
}

#define REGISTER_LOAD(mode, prefix, suffix, kind) \
  REGISTER(prefix##_load_##suffix, memory_load<Mode::mode, Kind::kind>)
#define REGISTER_STORE(mode, prefix, suffix, kind) \
  REGISTER(prefix##_store_##suffix, memory_store<Mode::mode, Kind::kind>)

#define REGISTER_MODE(mode, prefix)                    \
  REGISTER_LOAD(mode, prefix, dword, kWords1);         \
  REGISTER_LOAD(mode, prefix, dwordx2, kWords2);       \
  REGISTER_LOAD(mode, prefix, dwordx3, kWords3);       \
  REGISTER_LOAD(mode, prefix, dwordx4, kWords4);       \
  REGISTER_LOAD(mode, prefix, ubyte, kU8);             \
  REGISTER_LOAD(mode, prefix, sbyte, kI8);             \
  REGISTER_LOAD(mode, prefix, ushort, kU16);           \
  REGISTER_LOAD(mode, prefix, sshort, kI16);           \
  REGISTER_LOAD(mode, prefix, short_d16, kLow16);      \
  REGISTER_LOAD(mode, prefix, short_d16_hi, kHigh16);  \
  REGISTER_LOAD(mode, prefix, ubyte_d16, kU8Low);      \
  REGISTER_LOAD(mode, prefix, ubyte_d16_hi, kU8High);  \
  REGISTER_LOAD(mode, prefix, sbyte_d16, kI8Low);      \
  REGISTER_LOAD(mode, prefix, sbyte_d16_hi, kI8High);  \
  REGISTER_STORE(mode, prefix, dword, kWords1);        \
  REGISTER_STORE(mode, prefix, dwordx2, kWords2);      \
  REGISTER_STORE(mode, prefix, dwordx3, kWords3);      \
  REGISTER_STORE(mode, prefix, dwordx4, kWords4);      \
  REGISTER_STORE(mode, prefix, byte, kU8);             \
  REGISTER_STORE(mode, prefix, short, kU16);           \
  REGISTER_STORE(mode, prefix, short_d16_hi, kHigh16); \
  REGISTER_STORE(mode, prefix, byte_d16_hi, kU8High);  \
  REGISTER(prefix##_atomic, memory_atomic<Mode::mode>)

REGISTER_MODE(kGlobal, global);
REGISTER_MODE(kBuffer, buffer);
REGISTER_MODE(kScratch, scratch);
REGISTER_MODE(kFlat, flat);

#define REGISTER_LOAD_LDS(suffix, kind)                                           \
  REGISTER(global_load_lds_##suffix, memory_load_lds<Mode::kGlobal, Kind::kind>); \
  REGISTER(buffer_load_lds_##suffix, memory_load_lds<Mode::kBuffer, Kind::kind>)
REGISTER_LOAD_LDS(dword, kWords1);
REGISTER_LOAD_LDS(dwordx3, kWords3);
REGISTER_LOAD_LDS(dwordx4, kWords4);
REGISTER_LOAD_LDS(ubyte, kU8);
REGISTER_LOAD_LDS(sbyte, kI8);
REGISTER_LOAD_LDS(ushort, kU16);
REGISTER_LOAD_LDS(sshort, kI16);

}  // namespace
