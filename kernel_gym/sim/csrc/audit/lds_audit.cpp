#include "audit/lds_audit.h"

#include <algorithm>

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

void LdsAudit::begin_workgroup(u32 lds_size) {
  const u32 words = lds_size / 4 + 1;
  if (words_.size() < words) {
    words_.resize(words);
    written_.resize(words);
  }
  defined_.assign(4 * words, 0);
  defined_until_ = 0;
  late_reads_.begin_workgroup(lds_size);
}

bool LdsAudit::read(Wave& wave, const Inst* inst, const u32* places, const Runs& runs, u64 lanes,
                    u32 size) {
  if (state_.waves.size() > 1) late_reads_.note(wave.number, inst->index, places, runs, size);
  if (read_words(wave, inst->index, places, runs, size)) return true;
  for (u64 rest = runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), length = runs.length(l);
    if (length == 1 && l && lanes >> (l - 1) & 1 && places[l] == places[l - 1]) continue;
    if (!read_span(wave, inst, {l, size, length * size, places[l]})) return false;
  }
  return true;
}

bool LdsAudit::race(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u64 others,
                    u32 instruction) {
  if (LIKELY(!others) || state_.waves[wave.number].acquired_in_epoch) return false;
  raise_fault(wave, inst, FaultKind::kLdsRace, lane, place, size);
  wave.fault.other_instruction = instruction;
  wave.fault.other_wave = __builtin_ctzll(others) % 16;
  wave.fault.other_workgroup = state_.workgroup;
  return true;
}

void LdsAudit::suspect(const Wave& wave, u32 instruction, u32 lane, u32 place, u32 size) {
  u8*& map = state_.launch->lds_suspects[instruction];
  if (!map) {
    if (state_.launch->suspects.size() >= kMostSuspects) return;
    state_.launch->maps.emplace_back(new std::vector<u8>(defined_.size(), 0));
    map = state_.launch->maps.back()->data();
    state_.launch->suspects.push_back(
        {kLdsSuspect, instruction, wave.number, lane, state_.workgroup, place, map, 0, 0});
  }
  for (u32 b = place; b < place + size; b++) map[b] |= !defined_[b];
}

bool LdsAudit::is_defined(u32 place, u32 bytes) {
  if (LIKELY(place + bytes <= defined_until_)) return true;
  const u8* all = defined_.data();
  const size_t size = defined_.size();
  const void* gap = memchr(all + defined_until_, 0, size - defined_until_);
  defined_until_ = (u32)(gap ? (const u8*)gap - all : size);
  return place + bytes <= defined_until_ || memchr(all + place, 0, bytes) == nullptr;
}

// A barrier does not wait for LDS: a write that was under way when its wave came to the last one
// may not have landed yet.
bool LdsAudit::in_flight_at_barrier(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size,
                                    u32 word) {
  if (LIKELY(!state_.late) || state_.waves[wave.number].acquired_in_epoch) return false;
  const LdsWrite& write = written_[word];
  if (write.epoch < state_.first_epoch) return false;  // of another workgroup
  if (LIKELY(write.epoch >= state_.epoch || write.wave == wave.number)) return false;
  if (write.sequence <= state_.waves[write.wave].landed[write.vector]) return false;
  raise_fault(wave, inst, FaultKind::kUnwaitedWrite, lane, place, size);
  wave.fault.other_instruction = write.instruction;
  wave.fault.other_wave = write.wave;
  wave.fault.other_workgroup = state_.workgroup;
  return true;
}

// A barrier does not wait for LDS: a read that was under way when its wave came to the last one may
// still fetch what is written now.
bool LdsAudit::overtakes_read(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size,
                              u32 changed) {
  if (LIKELY(!late_reads_.any()) || state_.waves[wave.number].acquired_in_epoch) return false;
  for (; changed; changed &= changed - 1) {
    const auto* read = late_reads_.at(place + __builtin_ctz(changed), wave.number);
    if (!read) continue;
    raise_fault(wave, inst, FaultKind::kUnwaitedRead, lane, place, size);
    wave.fault.other_instruction = read->instruction;
    wave.fault.other_wave = __builtin_ctz(read->waves & ~(1u << wave.number));
    wave.fault.other_workgroup = state_.workgroup;
    return true;
  }
  return false;
}

// Reads of whole words that nobody else has written, which are the usual ones; false, and nothing
// is done, if any of them asks for a closer look.
bool LdsAudit::read_words(const Wave& wave, u32 instruction, const u32* places, const Runs& runs,
                          u32 size) {
  if (state_.late || atomic_only(state_.table[instruction].kind)) return false;
  const u64 mine = kEachByte << wave.number;
  const bool alone = state_.waves.size() == 1;
  u64 others = 0;
  for (u64 rest = runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), start = places[l], end = start + runs.length(l) * size;
    if (!is_defined(start, end - start)) return false;
    if (alone) continue;
    if ((start | end) & 3) return false;
    for (u32 w = start / 4; w < end / 4; w++) {
      const LdsWord& word = word_at(w);
      others |= word.writers | word.atomics;
    }
  }
  if (alone) return true;
  if (others & ~mine) return false;
  for (u64 rest = runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), start = places[l], end = start + runs.length(l) * size;
    for (u32 w = start / 4; w < end / 4; w++) {
      words_[w].readers |= mine;
      words_[w].reader = instruction;
    }
  }
  return true;
}

bool LdsAudit::read_span(Wave& wave, const Inst* inst, const Span& span) {
  const u32 start = (u32)span.start, end = start + span.bytes, size = span.size;
  const bool defined = is_defined(start, span.bytes);
  const bool private_ = state_.waves.size() == 1 || atomic_only(state_.table[inst->index].kind);
  u32 lane = span.lane;
  for (u32 place = start; place < end; place += size, lane++) {
    if (UNLIKELY(!defined) && !is_defined(place, size)) {
      suspect(wave, inst->index, lane, place, size);
    }
    for (u32 w = place / 4; w <= (place + size - 1) / 4 && !private_; w++) {
      if (!read_word(wave, inst, lane, place, size, w)) return false;
    }
  }
  return true;
}

bool LdsAudit::read_word(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u32 word) {
  if (in_flight_at_barrier(wave, inst, lane, place, size, word)) return false;
  const u64 mine = kEachByte << wave.number;
  const u64 bytes = kSpread[bytes_in_word(place, size, 4 * word)];
  LdsWord& state = word_at(word);
  const u64 writers = state.writers;
  u64 others = writers & ~bytes_with_any(writers & mine);  // not what it wrote itself
  if (!state_.launch->compares) others |= state.atomics & ~mine;
  if (race(wave, inst, lane, place, size, others & bytes, written_[word].instruction)) {
    return false;
  }
  state.readers |= mine & bytes;
  state.reader = inst->index;
  return true;
}

LdsAudit::LdsWrite LdsAudit::write_of(const Wave& wave, u32 instruction) {
  const u16 vector = copies(state_.table[instruction].kind);
  WaveState& state = state_.waves[wave.number];
  state.last_write[vector] = state.issued[vector];
  return {instruction, state_.epoch, state.issued[vector], (u16)wave.number, vector};
}

bool LdsAudit::wrote(Wave& wave, const Inst* inst, const Write& write) {
  const u64 base = (u64)wave.lds;
  for (u64 rest = write.runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), start = (u32)(write.addresses[l] - base);
    const u32 bytes = write.runs.length(l) * write.size;
    u8* defined = defined_.data() + start;
    if (bytes == 4) {
      memset(defined, 1, 4);
    } else {
      memset(defined, 1, bytes);
    }
    if (start <= defined_until_) {
      defined_until_ = std::max(defined_until_, start + bytes);
    }
  }
  if (state_.waves.size() == 1 || wrote_words(wave, inst->index, write)) return true;
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
bool LdsAudit::wrote_words(const Wave& wave, u32 instruction, const Write& write) {
  if (state_.late || late_reads_.any() || atomic_only(state_.table[instruction].kind)) return false;
  const u64 mine = kEachByte << wave.number, base = (u64)wave.lds;
  u64 others = 0;
  for (u64 rest = write.runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), start = (u32)(write.addresses[l] - base);
    const u32 end = start + write.runs.length(l) * write.size;
    if ((start | end) & 3) return false;
    for (u32 w = start / 4; w < end / 4; w++) {
      const LdsWord& word = word_at(w);
      others |= word.writers | word.atomics | word.readers;
    }
  }
  if (others & ~mine) return false;
  const LdsWrite made = write_of(wave, instruction);
  const u8* old = write.old;
  for (u64 rest = write.runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), start = (u32)(write.addresses[l] - base);
    const u32 end = start + write.runs.length(l) * write.size;
    for (u32 w = start / 4; w < end / 4; w++, old += 4) {
      u32 now, before;
      memcpy(&now, wave.lds + 4 * w, 4);
      memcpy(&before, old, 4);
      if (now == before) continue;
      words_[w].writers |= mine & kSpread[bytes_changed(now ^ before)];
      written_[w] = made;
    }
  }
  return true;
}

bool LdsAudit::wrote_span(Wave& wave, const Inst* inst, const Span& span, const u8* old) {
  const u32 start = (u32)span.start, end = start + span.bytes, size = span.size;
  u32 lane = span.lane;
  for (u32 place = start; place < end; place += size, old += size, lane++) {
    u32 changed = 0;
    for (u32 b = 0; b < size; b++) changed |= (u32)(wave.lds[place + b] != old[b]) << b;
    if (overtakes_read(wave, inst, lane, place, size, changed)) return false;
    for (u32 w = place / 4; w <= (place + size - 1) / 4; w++) {
      if (!wrote_word(wave, inst, lane, place, size, changed, w)) return false;
    }
  }
  return true;
}

bool LdsAudit::wrote_word(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u32 changed,
                          u32 word) {
  const bool atomic = atomic_only(state_.table[inst->index].kind);
  const u64 mine = kEachByte << wave.number;
  const u32 touched = bytes_in_word(place, size, 4 * word);
  const i32 shift = (i32)(4 * word - place);
  const u64 bytes = kSpread[touched];
  const u64 now = kSpread[(shift >= 0 ? changed >> shift : changed << -shift) & touched];
  if (now && in_flight_at_barrier(wave, inst, lane, place, size, word)) return false;
  LdsWord& state = word_at(word);
  const u64 wrote = atomic ? state.writers : state.writers | state.atomics;
  const u64 read = atomic && state_.launch->compares ? 0 : state.readers;
  const u32 writer = written_[word].instruction, reader = state.reader;
  if (race(wave, inst, lane, place, size, wrote & now & ~mine, writer) ||
      race(wave, inst, lane, place, size, read & now & ~mine, reader)) {
    return false;
  }
  if (atomic) {
    state.atomics |= mine & bytes;
  } else {
    const u64 again = bytes & ~now & bytes_with_any(state.writers);  // the same value
    state.writers = (state.writers & ~now) | (mine & (now | again));
  }
  if (now) written_[word] = write_of(wave, inst->index);
  return true;
}
