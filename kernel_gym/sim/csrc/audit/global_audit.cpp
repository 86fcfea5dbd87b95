#include "audit/global_audit.h"

#include <algorithm>

namespace {

constexpr u32 kMany = 4;  // from this number of words on, they are checked together

SIM_INLINE bool whole_words(u64 start, u32 bytes) { return !((start | bytes) & 3); }

}  // namespace

bool GlobalAudit::read(Wave& wave, const Inst* inst, const u64* addresses, const Runs& runs,
                       u64 lanes, u32 size) {
  const Mark made = mark(wave, inst, 0);
  for (u64 rest = runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), length = runs.length(l);
    const bool again = length == 1 && l && lanes >> (l - 1) & 1 && addresses[l] == addresses[l - 1];
    if (again) continue;
    if (!read_span(wave, inst, {l, size, length * size, addresses[l]}, made)) return false;
  }
  return true;
}

bool GlobalAudit::wrote(Wave& wave, const Inst* inst, const Write& write) {
  const u16 kind = state_.table[inst->index].kind;
  const Mark made = mark(wave, inst, atomic_only(kind) ? kAtomicMark : 0);
  const u8* old = write.old;
  for (u64 rest = write.runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), bytes = write.runs.length(l) * write.size;
    if (!wrote_span(wave, inst, {l, write.size, bytes, write.addresses[l]}, old, made))
      return false;
    old += bytes;
  }
  return write.ascending || atomic_only(kind) || copies(kind) || !lost(wave, inst, write);
}

// Whether lanes of one instruction store different values to one address, so that one survives.
bool GlobalAudit::lost(Wave& wave, const Inst* inst, const Write& write) {
  const u32* rows = wave.regs + inst->src[write.source].index;
  const bool high = state_.table[inst->index].kind & kHighHalf;
  for (u64 lanes = write.lanes; lanes; lanes &= lanes - 1) {
    const u32 l = __builtin_ctzll(lanes);
    const u8* now = (const u8*)write.addresses[l];
    if (write.size == 4 && !high && memcmp(now, &rows[l], 4) == 0) continue;  // the usual case
    for (u32 b = 0; b < write.size; b++) {
      const u32 word = rows[kLanes * (b / 4) + l] >> (high ? 16 : 0);
      if (now[b] == (u8)(word >> 8 * (b % 4))) continue;
      raise_fault(wave, inst, FaultKind::kLostWrite, l, write.addresses[l], write.size);
      return true;
    }
  }
  return false;
}

Mark GlobalAudit::mark(const Wave& wave, const Inst* inst, u8 flags) {
  if (state_.launch->events.size() < kMostEvents) {
    const bool counted = state_.table[inst->index].kind & kVectorCounter;
    state_.launch->events.push_back({(u32)state_.workgroup, state_.launch->tick, state_.epoch,
                                     inst->index, wave.number,
                                     counted ? state_.waves[wave.number].issued[1] : 0});
  }
  return (Mark)(state_.launch->events.size() - 1) << 6 | flags;
}

// Whether the marked event happened before: by program order, a barrier, or release and acquire.
bool GlobalAudit::ordered(const Wave& wave, Mark mark) const {
  const Event& event = state_.launch->event(mark);
  if (event.workgroup == state_.workgroup &&
      (event.wave == wave.number || event.epoch < state_.epoch)) {
    return true;
  }
  return state_.launch->released(event, state_.waves[wave.number].acquired);
}

// Compilers let several waves load what only one of them updates in place, and throw the copies
// away. Such a load becomes a suspect: if another value there changes memory, it is a race.
bool GlobalAudit::race(Wave& wave, const Inst* inst, u32 lane, u64 address, Mark other,
                       bool reading) {
  const Event& event = state_.launch->event(other);
  const u32 load = reading ? inst->index : event.instruction;
  const AuditInst& info = state_.table[load];
  const u16 access = info.kind & (kReadsMemory | kWritesMemory | kAtomicAccess | kScalarCounter);
  if (event.workgroup == state_.workgroup && access == kReadsMemory && info.writes[0].count) {
    auto& poison = state_.launch->poisons[load];
    if (!poison) {
      poison.reset(new Poison{load, info.writes[0], {}});
      state_.launch->suspects.push_back({kRaceSuspect, inst->index, wave.number, lane,
                                         state_.workgroup, address, poison.get(), event.instruction,
                                         event.wave});
    }
    poison->waves[state_.workgroup] |= 1u << (reading ? wave.number : event.wave);
    return true;
  }
  raise_fault(wave, inst, FaultKind::kGlobalRace, lane, address, 4);
  wave.fault.other_instruction = event.instruction;
  wave.fault.other_wave = event.wave;
  wave.fault.other_workgroup = event.workgroup;
  return false;
}

bool GlobalAudit::read_span(Wave& wave, const Inst* inst, const Span& span, Mark made) {
  const u64 end = span.start + span.bytes;
  const bool whole = whole_words(span.start, span.bytes);
  for (u64 word = span.start & ~3ull; word < end;) {
    const u32 index = word / 4 % Shadow::kPageWords;
    const u32 count = (u32)std::min<u64>((end - word + 3) / 4, Shadow::kPageWords - index);
    const u64 next = word + 4 * count;
    const bool at_once =
        whole && count >= kMany &&
        state_.launch->shadow.read(state_.launch->shadow.page(word), index, count, made);
    for (; !at_once && word < next; word += 4) {
      const Mark mark = made | (whole ? kBytes : bytes_in_word(span.start, span.bytes, word));
      if (!read_word(wave, inst, span, word, mark)) return false;
    }
    word = next;
  }
  return true;
}

bool GlobalAudit::read_word(Wave& wave, const Inst* inst, const Span& span, u64 address,
                            Mark made) {
  Shadow::Page& page = state_.launch->shadow.page(address);
  const u32 index = address / 4 % Shadow::kPageWords;
  const Mark write = page.write ? page.write[index] : 0;
  if (UNLIKELY(write & made & kBytes)) {
    const bool swapped = state_.launch->compares && (write & kAtomicMark);
    if (!(write & kSharedMark) && !swapped && !ordered(wave, write)) {
      const u32 lane = span.lane_of(std::max(address, span.start));
      if (!race(wave, inst, lane, address, write, true)) return false;
    }
  }
  if (!page.first_read) page.first_read = state_.launch->shadow.nobodys();
  Mark* marks = page.first_read;
  if (marks[index]) {
    if (!page.read) page.read = state_.launch->shadow.nobodys();
    marks = page.read;
  }
  marks[index] = made;
  return true;
}

bool GlobalAudit::wrote_span(Wave& wave, const Inst* inst, const Span& span, const u8* old,
                             Mark made) {
  if (!whole_words(span.start, span.bytes)) {
    for (u32 i = 0; i < span.bytes / span.size; i++) {
      const Span lane = {span.lane + i, span.size, span.size, span.start + i * span.size};
      if (!wrote_lane(wave, inst, lane, old + i * span.size, made)) return false;
    }
    return true;
  }
  const u64 end = span.start + span.bytes;
  for (u64 word = span.start; word < end;) {
    const u32 index = word / 4 % Shadow::kPageWords;
    const u32 count = (u32)std::min<u64>((end - word) / 4, Shadow::kPageWords - index);
    const u64 next = word + 4 * count;
    const u8* before = old + (word - span.start);
    Shadow::Page& page = state_.launch->shadow.page(word);
    const u8* now = (const u8*)word;
    const bool at_once = count >= kMany && state_.launch->shadow.wrote(page, index, count, made,
                                                                       now, before, span.size);
    for (; !at_once && word < next; word += 4, before += 4) {
      u32 after, then;
      memcpy(&after, (const void*)word, 4);
      memcpy(&then, before, 4);
      const u32 changed = bytes_changed(after ^ then), step = std::min(4u, span.size);
      for (u32 at = 0; at < 4; at += step) {  // lanes that share the word
        const u32 bytes = ((1u << step) - 1) << at;
        if (!wrote_word(wave, inst, span, word, made | bytes, changed & bytes)) return false;
      }
    }
    word = next;
  }
  return true;
}

// Checks a write of one lane to parts of words.
bool GlobalAudit::wrote_lane(Wave& wave, const Inst* inst, const Span& lane, const u8* old,
                             Mark made) {
  const u64 start = lane.start;
  const u32 size = lane.size;
  const u8* now = (const u8*)start;
  u32 changed = 0;
  for (u32 b = 0; b < size; b++) changed |= (u32)(now[b] != old[b]) << b;
  for (u64 word = start & ~3ull; word < start + size; word += 4) {
    const u8 bytes = bytes_in_word(start, size, word);
    const i64 shift = (i64)(word - start);
    const u8 now_changed = (u8)(shift >= 0 ? changed >> shift : changed << -shift) & kBytes;
    if (!wrote_word(wave, inst, lane, word, made | bytes, now_changed)) return false;
  }
  return true;
}

bool GlobalAudit::wrote_word(Wave& wave, const Inst* inst, const Span& span, u64 address, Mark made,
                             u32 changed) {
  Shadow::Page& page = state_.launch->shadow.page(address);
  const u32 index = address / 4 % Shadow::kPageWords;
  const bool atomic = made & kAtomicMark;
  if (!changed) {
    if (!page.write || !page.write[index] || atomic) return true;
    if (!ordered(wave, page.write[index])) page.write[index] |= kSharedMark;
    return true;
  }
  for (const Mark* marks : {page.write, page.read, page.first_read}) {
    if (!marks || LIKELY(!(marks[index] & changed))) continue;
    if (atomic && (marks[index] & kAtomicMark)) continue;
    if (atomic && state_.launch->compares && marks != page.write) continue;
    if (ordered(wave, marks[index])) continue;
    const u64 first = address + __builtin_ctz(changed);
    if (!race(wave, inst, span.lane_of(first), address, marks[index], false)) return false;
  }
  if (!page.write) page.write = state_.launch->shadow.nobodys();
  Mark& write = page.write[index];
  const u32 others = write ^ made;
  const bool same = write && !(others & (kAtomicMark | kSharedMark)) &&
                    state_.launch->event(write).workgroup == state_.workgroup &&
                    state_.launch->event(write).wave == wave.number &&
                    state_.launch->event(write).epoch == state_.epoch;
  write = same ? made | (write & kBytes) : made;
  return true;
}
