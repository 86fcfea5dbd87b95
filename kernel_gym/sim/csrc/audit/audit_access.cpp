// The audit of memory accesses: what a write has changed, and global memory: who has touched each
// word in this launch.
#include <algorithm>

#include "audit/audit.h"

namespace {

// Copies and compares what a lane accesses; the usual sizes without a call.
SIM_INLINE void copy_access(void* to, const void* from, u32 size) {
  if (size == 4) {
    memcpy(to, from, 4);
  } else if (size == 16) {
    memcpy(to, from, 16);
  } else {
    memcpy(to, from, size);
  }
}

constexpr u32 kMany = 4;  // words from which on it pays to look at them together

SIM_INLINE bool whole_words(u64 start, u32 bytes) { return !((start | bytes) & 3); }

}  // namespace

bool Audit::global(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size) {
  const u16 kind = launch_->table[inst->index].kind;
  if (!lanes) return true;
  const Runs runs = runs_of(addresses, lanes, size);
  if ((kind & kWritesMemory) && !copies(kind)) {
    Write& write = remember(runs, lanes, size, false);
    u64 end = 0;
    for (u64 rest = runs.starts; rest; rest &= rest - 1) {
      const u32 l = __builtin_ctzll(rest);
      write.addresses[l] = addresses[l];
      write.ascending &= addresses[l] >= end;
      end = addresses[l] + runs.length(l) * size;
    }
    if (!write.ascending) memcpy(write.addresses, addresses, sizeof write.addresses);
    keep_old(write);
    return true;
  }
  if (atomic_only(kind)) return true;
  const Mark made = mark(wave, inst, 0);
  for (u64 rest = runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), length = runs.length(l);
    const bool again = length == 1 && l && lanes >> (l - 1) & 1 && addresses[l] == addresses[l - 1];
    if (again) continue;
    if (!read(wave, inst, {l, size, length * size, addresses[l]}, made)) return false;
  }
  return true;
}

Audit::Write& Audit::remember(const Runs& runs, u64 lanes, u32 size, bool local) {
  Write& write = writes_[write_count_++];
  write.lanes = lanes;
  write.runs = runs;
  write.size = size;
  write.source = 1 + write_count_;
  write.local = local;
  write.ascending = true;
  return write;
}

// What lies where a write is about to happen.
void Audit::keep_old(Write& write) {
  u8* old = write.old;
  for (u64 rest = write.runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), length = write.runs.length(l);
    copy_access(old, (const void*)write.addresses[l], length * write.size);
    old += length * write.size;
  }
}

// Looks at a write that is done: what it has changed, and whether another lane has undone it.
bool Audit::finish(Wave& wave, const Inst* inst, const Write& write) {
  // In LDS compilers let lanes that hold the same sum, but for its rounding, all store it.
  if (write.local) return wrote_lds(wave, inst, write);
  const u16 kind = launch_->table[inst->index].kind;
  const Mark made = mark(wave, inst, atomic_only(kind) ? kAtomicMark : 0);
  const u8* old = write.old;
  for (u64 rest = write.runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), bytes = write.runs.length(l) * write.size;
    if (!wrote(wave, inst, {l, write.size, bytes, write.addresses[l]}, old, made)) return false;
    old += bytes;
  }
  return write.ascending || atomic_only(kind) || copies(kind) ||
         !lost(wave, inst, write);
}

// Lanes of one instruction that store different values to one address: only one survives.
bool Audit::lost(Wave& wave, const Inst* inst, const Write& write) {
  const u32* rows = wave.regs + inst->src[write.source].index;
  const bool high = launch_->table[inst->index].kind & kHighHalf;
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

// ---- global memory: who has touched each word in this launch
Mark Audit::mark(const Wave& wave, const Inst* inst, u8 flags) {
  if (launch_->events.size() < kMostEvents) {
    launch_->events.push_back(
        {(u32)workgroup_, launch_->tick, epoch_, inst->index, wave.number});
  }
  return (Mark)(launch_->events.size() - 1) << 6 | flags;
}

// Whether what is marked happened before, by program order, a barrier, or release and acquire.
bool Audit::ordered(const Wave& wave, Mark mark) const {
  const Event& event = launch_->event(mark);
  if (event.workgroup == workgroup_ && (event.wave == wave.number || event.epoch < epoch_)) {
    return true;
  }
  return launch_->released(event, waves_[wave.number].acquired);
}

// Compilers let several waves load what only one of them updates in place, and throw the copies
// away. Such a load becomes a suspect: if another value there changes memory, it is a race.
bool Audit::race(Wave& wave, const Inst* inst, u32 lane, u64 address, Mark other, bool reading) {
  const Event& event = launch_->event(other);
  const u32 load = reading ? inst->index : event.instruction;
  const AuditInst& info = launch_->table[load];
  const u16 access = info.kind & (kReadsMemory | kWritesMemory | kAtomicAccess | kScalarCounter);
  if (event.workgroup == workgroup_ && access == kReadsMemory && info.writes[0].count) {
    auto& poison = launch_->poisons[load];
    if (!poison) {
      poison.reset(new Poison{load, info.writes[0], {}});
      launch_->suspects.push_back({kRaceSuspect, inst->index, wave.number, lane, workgroup_, address,
                                  poison.get(), event.instruction, event.wave});
    }
    poison->waves[workgroup_] |= 1u << (reading ? wave.number : event.wave);
    return true;
  }
  raise_fault(wave, inst, FaultKind::kGlobalRace, lane, address, 4);
  wave.fault.other_instruction = event.instruction;
  wave.fault.other_wave = event.wave;
  wave.fault.other_workgroup = event.workgroup;
  return false;
}

bool Audit::read(Wave& wave, const Inst* inst, const Span& span, Mark made) {
  const u64 end = span.start + span.bytes;
  const bool whole = whole_words(span.start, span.bytes);
  for (u64 word = span.start & ~3ull; word < end;) {
    const u32 index = word / 4 % Shadow::kPageWords;
    const u32 count = (u32)std::min<u64>((end - word + 3) / 4, Shadow::kPageWords - index);
    const u64 next = word + 4 * count;
    const bool at_once = whole && count >= kMany &&
                         launch_->shadow.read(launch_->shadow.page(word), index, count, made);
    for (; !at_once && word < next; word += 4) {
      const Mark mark = made | (whole ? kBytes : bytes_in_word(span.start, span.bytes, word));
      if (!read_word(wave, inst, span, word, mark)) return false;
    }
    word = next;
  }
  return true;
}

bool Audit::read_word(Wave& wave, const Inst* inst, const Span& span, u64 address, Mark made) {
  Shadow::Page& page = launch_->shadow.page(address);
  const u32 index = address / 4 % Shadow::kPageWords;
  const Mark write = page.write ? page.write[index] : 0;
  if (UNLIKELY(write & made & kBytes)) {
    const bool swapped = launch_->compares && (write & kAtomicMark);
    if (!(write & kSharedMark) && !swapped && !ordered(wave, write)) {
      const u32 lane = span.lane_of(std::max(address, span.start));
      if (!race(wave, inst, lane, address, write, true)) return false;
    }
  }
  if (!page.first_read) page.first_read = launch_->shadow.nobodys();
  Mark* marks = page.first_read;
  if (marks[index]) {
    if (!page.read) page.read = launch_->shadow.nobodys();
    marks = page.read;
  }
  marks[index] = made;
  return true;
}

bool Audit::wrote(Wave& wave, const Inst* inst, const Span& span, const u8* old, Mark made) {
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
    Shadow::Page& page = launch_->shadow.page(word);
    const u8* now = (const u8*)word;
    const bool at_once = count >= kMany && launch_->shadow.wrote(page, index, count, made, now,
                                                                 before, span.size);
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

// What a lane wrote to parts of words.
bool Audit::wrote_lane(Wave& wave, const Inst* inst, const Span& lane, const u8* old, Mark made) {
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

bool Audit::wrote_word(Wave& wave, const Inst* inst, const Span& span, u64 address, Mark made,
                       u32 changed) {
  Shadow::Page& page = launch_->shadow.page(address);
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
    if (atomic && launch_->compares && marks != page.write) continue;
    if (ordered(wave, marks[index])) continue;
    const u64 first = address + __builtin_ctz(changed);
    if (!race(wave, inst, span.lane_of(first), address, marks[index], false)) return false;
  }
  if (!page.write) page.write = launch_->shadow.nobodys();
  Mark& write = page.write[index];
  const u32 others = write ^ made;
  const bool same = write && !(others & (kAtomicMark | kSharedMark)) &&
                    launch_->event(write).workgroup == workgroup_ &&
                    launch_->event(write).wave == wave.number &&
                    launch_->event(write).epoch == epoch_;
  write = same ? made | (write & kBytes) : made;
  return true;
}
