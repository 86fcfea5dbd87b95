// The audit of LDS: who has touched each byte since the last barrier.
#include <algorithm>

#include "audit/audit.h"

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

void Audit::begin_lds(u32 lds_size) {
  const u32 words = lds_size / 4 + 1;
  if (lds_.size() < words) {
    lds_.resize(words);
    lds_written_.resize(words);
  }
  lds_defined_.assign(4 * words, 0);
  lds_defined_until_ = 0;
}

bool Audit::lds(Wave& wave, const Inst* inst, const u32* addresses, u64 lanes, u32 offset,
                u32 size) {
  if (!lanes) return true;
  const AuditInst& info = launch_->table[inst->index];
  PaddedRow row;
  u32* places = row.words;
  u64 misaligned = 0;
  const U low = splat(info.alignment ? info.alignment - 1u : 0u);
  for (int c = 0; c < kChunks; c++) {
    const U place = load(addresses, c) + offset;
    put(places, c, place);
    misaligned |= to_bits((I)((place & low) != 0u), c);
  }
  if (UNLIKELY(misaligned & lanes)) {
    const u32 l = __builtin_ctzll(misaligned & lanes);
    raise_fault(wave, inst, FaultKind::kMisaligned, l, places[l], size);
    return false;
  }
  const Runs runs = runs_of(row, lanes, size);
  const bool reads = !(info.kind & kWritesMemory) || atomic_only(info.kind);
  if (reads && !read_words(wave, inst->index, places, runs, size)) {
    for (u64 rest = runs.starts; rest; rest &= rest - 1) {
      const u32 l = __builtin_ctzll(rest), length = runs.length(l);
      if (length == 1 && l && lanes >> (l - 1) & 1 && places[l] == places[l - 1]) continue;
      if (!read_lds(wave, inst, {l, size, length * size, places[l]})) return false;
    }
  }
  if (!(info.kind & kWritesMemory)) return true;
  Write& write = remember(runs, lanes, size, true);
  for (u64 rest = runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest);
    write.addresses[l] = (u64)wave.lds + places[l];
  }
  keep_old(write);
  return true;
}

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
  u8*& map = launch_->lds_suspects[instruction];
  if (!map) {
    if (launch_->suspects.size() >= kMostSuspects) return;
    launch_->maps.emplace_back(new std::vector<u8>(lds_defined_.size(), 0));
    map = launch_->maps.back()->data();
    launch_->suspects.push_back(
        {kLdsSuspect, instruction, wave.number, lane, workgroup_, place, map, 0, 0});
  }
  for (u32 b = place; b < place + size; b++) map[b] |= !lds_defined_[b];
}

bool Audit::lds_defined(u32 place, u32 bytes) {
  if (LIKELY(place + bytes <= lds_defined_until_)) return true;
  const u8* all = lds_defined_.data();
  const size_t size = lds_defined_.size();
  const void* gap = memchr(all + lds_defined_until_, 0, size - lds_defined_until_);
  lds_defined_until_ = (u32)(gap ? (const u8*)gap - all : size);
  return place + bytes <= lds_defined_until_ || memchr(all + place, 0, bytes) == nullptr;
}

// A barrier does not wait for LDS: a write that was under way when its wave came to the last one may
// not have landed yet.
bool Audit::in_flight_at_barrier(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size,
                                 u32 word) {
  if (LIKELY(!late_) || waves_[wave.number].acquired_in_epoch) return false;
  const LdsWrite& write = lds_written_[word];
  if (write.epoch < first_epoch_) return false;  // of another workgroup
  if (LIKELY(write.epoch >= epoch_ || write.wave == wave.number)) return false;
  if (write.sequence <= waves_[write.wave].landed[write.vector]) return false;
  raise_fault(wave, inst, FaultKind::kUnwaitedWrite, lane, place, size);
  wave.fault.other_instruction = write.instruction;
  wave.fault.other_wave = write.wave;
  wave.fault.other_workgroup = workgroup_;
  return true;
}

// Reads of whole words that nobody else has written, which are the usual ones; false, and nothing
// is done, if any of them asks for a closer look.
bool Audit::read_words(const Wave& wave, u32 instruction, const u32* places, const Runs& runs,
                       u32 size) {
  if (late_ || atomic_only(table_[instruction].kind)) return false;
  const u64 mine = kEachByte << wave.number;
  const bool alone = waves_.size() == 1;
  u64 others = 0;
  for (u64 rest = runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), start = places[l], end = start + runs.length(l) * size;
    if (!lds_defined(start, end - start)) return false;
    if (alone) continue;
    if ((start | end) & 3) return false;
    for (u32 w = start / 4; w < end / 4; w++) {
      const LdsWord& word = lds_word(w);
      others |= word.writers | word.atomics;
    }
  }
  if (alone) return true;
  if (others & ~mine) return false;
  for (u64 rest = runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), start = places[l], end = start + runs.length(l) * size;
    for (u32 w = start / 4; w < end / 4; w++) {
      lds_[w].readers |= mine;
      lds_[w].reader = instruction;
    }
  }
  return true;
}

bool Audit::read_lds(Wave& wave, const Inst* inst, const Span& span) {
  const u32 start = (u32)span.start, end = start + span.bytes, size = span.size;
  const bool defined = lds_defined(start, span.bytes);
  const bool private_ = waves_.size() == 1 || atomic_only(table_[inst->index].kind);
  u32 lane = span.lane;
  for (u32 place = start; place < end; place += size, lane++) {
    if (UNLIKELY(!defined) && !lds_defined(place, size)) {
      suspect_lds(wave, inst->index, lane, place, size);
    }
    for (u32 w = place / 4; w <= (place + size - 1) / 4 && !private_; w++) {
      if (!read_lds_word(wave, inst, lane, place, size, w)) return false;
    }
  }
  return true;
}

bool Audit::read_lds_word(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u32 word) {
  if (in_flight_at_barrier(wave, inst, lane, place, size, word)) return false;
  const u64 mine = kEachByte << wave.number;
  const u64 bytes = kSpread[bytes_in_word(place, size, 4 * word)];
  LdsWord& state = lds_word(word);
  const u64 writers = state.writers;
  u64 others = writers & ~bytes_with_any(writers & mine);  // not what it wrote itself
  if (!launch_->compares) others |= state.atomics & ~mine;
  if (lds_race(wave, inst, lane, place, size, others & bytes, lds_written_[word].instruction)) {
    return false;
  }
  state.readers |= mine & bytes;
  state.reader = inst->index;
  return true;
}

Audit::LdsWrite Audit::lds_write(const Wave& wave, u32 instruction) {
  const u16 vector = copies(launch_->table[instruction].kind);
  WaveState& state = waves_[wave.number];
  state.last_write[vector] = state.issued[vector];
  return {instruction, epoch_, state.issued[vector], (u16)wave.number, vector};
}

bool Audit::wrote_lds(Wave& wave, const Inst* inst, const Write& write) {
  const u64 base = (u64)wave.lds;
  for (u64 rest = write.runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), start = (u32)(write.addresses[l] - base);
    const u32 bytes = write.runs.length(l) * write.size;
    u8* defined = lds_defined_.data() + start;
    if (bytes == 4) {
      memset(defined, 1, 4);
    } else {
      memset(defined, 1, bytes);
    }
    if (start <= lds_defined_until_) {
      lds_defined_until_ = std::max(lds_defined_until_, start + bytes);
    }
  }
  if (waves_.size() == 1 || wrote_words(wave, inst->index, write)) return true;
  const u8* old = write.old;
  for (u64 rest = write.runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), bytes = write.runs.length(l) * write.size;
    const Span span = {l, write.size, bytes, write.addresses[l] - base};
    if (!wrote_span(wave, inst, span, old)) return false;
    old += bytes;
  }
  return true;
}

// Writes of whole words that nobody else has touched; false, and nothing is done, if any of them
// asks for a closer look.
bool Audit::wrote_words(const Wave& wave, u32 instruction, const Write& write) {
  if (atomic_only(table_[instruction].kind)) return false;
  const u64 mine = kEachByte << wave.number, base = (u64)wave.lds;
  u64 others = 0;
  for (u64 rest = write.runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), start = (u32)(write.addresses[l] - base);
    const u32 end = start + write.runs.length(l) * write.size;
    if ((start | end) & 3) return false;
    for (u32 w = start / 4; w < end / 4; w++) {
      const LdsWord& word = lds_word(w);
      others |= word.writers | word.atomics | word.readers;
    }
  }
  if (others & ~mine) return false;
  const LdsWrite made = lds_write(wave, instruction);
  const u8* old = write.old;
  for (u64 rest = write.runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), start = (u32)(write.addresses[l] - base);
    const u32 end = start + write.runs.length(l) * write.size;
    for (u32 w = start / 4; w < end / 4; w++, old += 4) {
      u32 now, before;
      memcpy(&now, wave.lds + 4 * w, 4);
      memcpy(&before, old, 4);
      if (now == before) continue;
      lds_[w].writers |= mine & kSpread[bytes_changed(now ^ before)];
      lds_written_[w] = made;
    }
  }
  return true;
}

bool Audit::wrote_span(Wave& wave, const Inst* inst, const Span& span, const u8* old) {
  const u32 start = (u32)span.start, end = start + span.bytes, size = span.size;
  u32 lane = span.lane;
  for (u32 place = start; place < end; place += size, old += size, lane++) {
    u32 changed = 0;
    for (u32 b = 0; b < size; b++) changed |= (u32)(wave.lds[place + b] != old[b]) << b;
    for (u32 w = place / 4; w <= (place + size - 1) / 4; w++) {
      if (!wrote_lds_word(wave, inst, lane, place, size, changed, w)) return false;
    }
  }
  return true;
}

bool Audit::wrote_lds_word(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size,
                           u32 changed, u32 word) {
  const bool atomic = atomic_only(launch_->table[inst->index].kind);
  const u64 mine = kEachByte << wave.number;
  const u32 touched = bytes_in_word(place, size, 4 * word);
  const i32 shift = (i32)(4 * word - place);
  const u64 bytes = kSpread[touched];
  const u64 now = kSpread[(shift >= 0 ? changed >> shift : changed << -shift) & touched];
  LdsWord& state = lds_word(word);
  const u64 wrote = atomic ? state.writers : state.writers | state.atomics;
  const u64 read = atomic && launch_->compares ? 0 : state.readers;
  const u32 writer = lds_written_[word].instruction, reader = state.reader;
  if (lds_race(wave, inst, lane, place, size, wrote & now & ~mine, writer) ||
      lds_race(wave, inst, lane, place, size, read & now & ~mine, reader)) {
    return false;
  }
  if (atomic) {
    state.atomics |= mine & bytes;
  } else {
    const u64 again = bytes & ~now & bytes_with_any(state.writers);  // the same value
    state.writers = (state.writers & ~now) | (mine & (now | again));
  }
  if (now) lds_written_[word] = lds_write(wave, inst->index);
  return true;
}
