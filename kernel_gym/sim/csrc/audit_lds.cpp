// The audit of LDS: who has touched each byte since the last barrier.
#include "audit.h"

namespace {

// 16 bits for each of the bytes with a bit in `bytes`.
constexpr u64 kSpread[16] = {
    0x0000000000000000, 0x000000000000ffff, 0x00000000ffff0000, 0x00000000ffffffff,
    0x0000ffff00000000, 0x0000ffff0000ffff, 0x0000ffffffff0000, 0x0000ffffffffffff,
    0xffff000000000000, 0xffff00000000ffff, 0xffff0000ffff0000, 0xffff0000ffffffff,
    0xffffffff00000000, 0xffffffff0000ffff, 0xffffffffffff0000, 0xffffffffffffffff};
constexpr u64 kEachByte = 0x0001000100010001;  // the bit of wave 0 in the 16 bits of each byte

// All 16 bits of the bytes that have any bit.
SIM_INLINE u64 bytes_with_any(u64 word) {
  constexpr u64 kLow = 0x7fff * kEachByte;
  return ((((word & kLow) + kLow) | word) >> 15 & kEachByte) * 0xffff;
}

}  // namespace

bool Audit::lds_race(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u64 others,
                     u32 instruction) {
  if (LIKELY(!others) || waves_[wave.number].acquired_in_epoch) return false;
  raise_fault(wave, inst, FaultKind::kLdsRace, lane, place, size);
  wave.fault.other_instruction = instruction;
  wave.fault.other_wave = __builtin_ctzll(others) % 16;
  wave.fault.other_workgroup = workgroup_;
  return true;
}

void Audit::suspect_lds(const Wave& wave, u32 instruction, u32 lane, u32 place, u32 size) {
  u8*& map = launch_.lds_suspects[instruction];
  if (!map) {
    if (launch_.suspects.size() >= kMostSuspects) return;
    launch_.maps.emplace_back(new std::vector<u8>(lds_defined_.size(), 0));
    map = launch_.maps.back()->data();
    launch_.suspects.push_back(
        {kLdsSuspect, instruction, wave.number, lane, workgroup_, place, map, 0, 0});
  }
  for (u32 b = place; b < place + size; b++) map[b] |= !lds_defined_[b];
}

// A barrier does not wait for LDS: a write that was under way when its wave came to the last one may
// not have landed yet.
bool Audit::in_flight_at_barrier(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size) {
  if (LIKELY(!late_) || waves_[wave.number].acquired_in_epoch) return false;
  for (u32 w = place / 4; w <= (place + size - 1) / 4; w++) {
    const LdsWrite& write = lds_written_[w];
    if (LIKELY(write.epoch >= epoch_ || write.wave == wave.number)) continue;
    if (write.sequence <= waves_[write.wave].landed[write.vector]) continue;
    raise_fault(wave, inst, FaultKind::kUnwaitedWrite, lane, place, size);
    wave.fault.other_instruction = lds_writer_[w];
    wave.fault.other_wave = write.wave;
    wave.fault.other_workgroup = workgroup_;
    return true;
  }
  return false;
}

bool Audit::read_lds(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size) {
  if (UNLIKELY(memchr(lds_defined_.data() + place, 0, size) != nullptr)) suspect_lds(wave, inst->index, lane, place, size);
  if (waves_.size() == 1 || atomic_only(launch_.table[inst->index].kind)) return true;
  if (in_flight_at_barrier(wave, inst, lane, place, size)) return false;
  const u64 mine = kEachByte << wave.number;
  for (u32 w = place / 4; w <= (place + size - 1) / 4; w++) {
    const u64 bytes = kSpread[bytes_in_word(place, size, 4 * w)];
    LdsWord& word = lds_[w];
    u64 others = word.writers & ~bytes_with_any(word.writers & mine);  // not what it wrote itself
    if (!launch_.compares) others |= word.atomics & ~mine;
    if (lds_race(wave, inst, lane, place, size, others & bytes, lds_writer_[w])) return false;
    word.readers |= mine & bytes;
    lds_reader_[w] = inst->index;
  }
  return true;
}

bool Audit::wrote_lds(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u32 changed) {
  memset(lds_defined_.data() + place, 1, size);
  if (waves_.size() == 1) return true;
  const u16 kind = launch_.table[inst->index].kind;
  const bool atomic = atomic_only(kind), vector = copies(kind);
  const u64 mine = kEachByte << wave.number;
  for (u32 w = place / 4; w <= (place + size - 1) / 4; w++) {
    LdsWord& word = lds_[w];
    const u32 touched = bytes_in_word(place, size, 4 * w);
    const i32 shift = (i32)(4 * w - place);
    const u64 bytes = kSpread[touched];
    const u64 now = kSpread[(shift >= 0 ? changed >> shift : changed << -shift) & touched];
    const u64 writers = atomic ? word.writers : word.writers | word.atomics;
    const u64 readers = atomic && launch_.compares ? 0 : word.readers;
    if (lds_race(wave, inst, lane, place, size, writers & now & ~mine, lds_writer_[w]) ||
        lds_race(wave, inst, lane, place, size, readers & now & ~mine, lds_reader_[w])) {
      return false;
    }
    if (atomic) {
      word.atomics |= mine & bytes;
    } else {
      const u64 again = bytes & ~now & bytes_with_any(word.writers);  // the same value
      word.writers = (word.writers & ~now) | (mine & (now | again));
    }
    if (!now) continue;
    lds_writer_[w] = inst->index;
    lds_written_[w] = {epoch_, waves_[wave.number].issued[vector], (u16)wave.number, vector};
  }
  return true;
}
