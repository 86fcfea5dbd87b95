// The audit of memory accesses: what a write has changed, and global memory: who has touched each
// word in this launch.
#include "audit.h"

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
SIM_INLINE bool same_access(const u8* a, const u8* b, u32 size) {
  if (size % 4) return memcmp(a, b, size) == 0;
  u32 differ = 0;
  for (u32 i = 0; i < size; i += 4) {
    u32 x, y;
    memcpy(&x, a + i, 4);
    memcpy(&y, b + i, 4);
    differ |= x ^ y;
  }
  return !differ;
}

}  // namespace

bool Audit::global(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size) {
  const u16 kind = launch_.table[inst->index].kind;
  if ((kind & kWritesMemory) && !copies(kind)) {
    remember(wave, addresses, lanes, size, false);
    return true;
  }
  if (atomic_only(kind) || !lanes) return true;
  const Mark made = mark(wave, inst, 0);
  for (; lanes; lanes &= lanes - 1) {
    const u32 l = __builtin_ctzll(lanes);
    const u64 end = addresses[l] + size;
    for (u64 word = addresses[l] & ~3ull; word < end; word += 4) {
      const u8 bytes = bytes_in_word(addresses[l], size, word);
      if (!read_word(wave, inst, l, word, made | bytes)) return false;
    }
  }
  return true;
}

bool Audit::lds(Wave& wave, const Inst* inst, const u32* addresses, u64 lanes, u32 offset,
                u32 size) {
  const AuditInst& info = launch_.table[inst->index];
  u64 places[kLanes];
  for (u64 rest = lanes; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest);
    const u32 place = addresses[l] + offset;
    if (info.alignment && place % info.alignment) {
      raise_fault(wave, inst, FaultKind::kMisaligned, l, place, size);
      return false;
    }
    places[l] = (u64)wave.lds + place;
    if (!(info.kind & kWritesMemory) || atomic_only(info.kind)) {
      if (!read_lds(wave, inst, l, place, size)) return false;
    }
  }
  if (info.kind & kWritesMemory) remember(wave, places, lanes, size, true);
  return true;
}

void Audit::remember(Wave& wave, const u64* addresses, u64 lanes, u32 size, bool local) {
  Write& write = writes_[write_count_++];
  write.lanes = lanes;
  write.size = size;
  write.source = 1 + write_count_;
  write.local = local;
  write.ascending = true;
  u64 end = 0;
  for (; lanes; lanes &= lanes - 1) {
    const u32 l = __builtin_ctzll(lanes);
    write.addresses[l] = addresses[l];
    write.ascending &= addresses[l] >= end;
    end = addresses[l] + size;
    copy_access(write.old + 16 * l, (const void*)addresses[l], size);
  }
}

// Looks at a write that is done: what it has changed, and whether another lane has undone it.
bool Audit::finish(Wave& wave, const Inst* inst, const Write& write) {
  const u16 kind = launch_.table[inst->index].kind;
  const Mark made = write.local ? 0 : mark(wave, inst, atomic_only(kind) ? kAtomicMark : 0);
  for (u64 lanes = write.lanes; lanes; lanes &= lanes - 1) {
    const u32 l = __builtin_ctzll(lanes);
    const u64 start = write.addresses[l];
    const u8* now = (const u8*)start;
    const u8* old = write.old + 16 * l;
    u32 changed = 0;
    if (!same_access(now, old, write.size)) {
      for (u32 b = 0; b < write.size; b++) changed |= (u32)(now[b] != old[b]) << b;
    }
    if (write.local) {
      const u32 place = (u32)(start - (u64)wave.lds);
      if (!wrote_lds(wave, inst, l, place, write.size, changed)) return false;
      continue;
    }
    for (u64 word = start & ~3ull; word < start + write.size; word += 4) {
      const u8 bytes = bytes_in_word(start, write.size, word);
      const i64 shift = (i64)(word - start);
      const u8 now_changed = (u8)(shift >= 0 ? changed >> shift : changed << -shift) & kBytes;
      if (!wrote_word(wave, inst, l, word, made | bytes, now_changed)) return false;
    }
  }
  // In LDS compilers let lanes that hold the same sum, but for its rounding, all store it.
  return write.local || write.ascending || atomic_only(kind) || copies(kind) ||
         !lost(wave, inst, write);
}

// Lanes of one instruction that store different values to one address: only one survives.
bool Audit::lost(Wave& wave, const Inst* inst, const Write& write) {
  const u32* rows = wave.regs + inst->src[write.source].index;
  const bool high = launch_.table[inst->index].kind & kHighHalf;
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
  if (launch_.events.size() < kMostEvents) {
    launch_.events.push_back(
        {(u32)workgroup_, launch_.tick, epoch_, inst->index, wave.number});
  }
  return (Mark)(launch_.events.size() - 1) << 6 | flags;
}

// Whether what is marked happened before, by program order, a barrier, or release and acquire.
bool Audit::ordered(const Wave& wave, Mark mark) const {
  const Event& event = launch_.event(mark);
  if (event.workgroup == workgroup_ && (event.wave == wave.number || event.epoch < epoch_)) {
    return true;
  }
  return launch_.released(event, waves_[wave.number].acquired);
}

// Compilers let several waves load what only one of them updates in place, and throw the copies
// away. Such a load becomes a suspect: if another value there changes memory, it is a race.
bool Audit::race(Wave& wave, const Inst* inst, u32 lane, u64 address, Mark other, bool reading) {
  const Event& event = launch_.event(other);
  const u32 load = reading ? inst->index : event.instruction;
  const AuditInst& info = launch_.table[load];
  const u16 access = info.kind & (kReadsMemory | kWritesMemory | kAtomicAccess | kScalarCounter);
  if (event.workgroup == workgroup_ && access == kReadsMemory && info.writes[0].count) {
    auto& poison = launch_.poisons[load];
    if (!poison) {
      poison.reset(new Poison{load, info.writes[0], {}});
      launch_.suspects.push_back({kRaceSuspect, inst->index, wave.number, lane, workgroup_, address,
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

bool Audit::read_word(Wave& wave, const Inst* inst, u32 lane, u64 address, Mark made) {
  AuditLaunch::Word& word = launch_.word(address);
  if (UNLIKELY(word.write & made & kBytes)) {
    const bool swapped = launch_.compares && (word.write & kAtomicMark);
    if (!(word.write & kSharedMark) && !swapped && !ordered(wave, word.write)) {
      if (!race(wave, inst, lane, address, word.write, true)) return false;
    }
  }
  (word.first_read ? word.read : word.first_read) = made;
  return true;
}

bool Audit::wrote_word(Wave& wave, const Inst* inst, u32 lane, u64 address, Mark made,
                       u8 changed) {
  AuditLaunch::Word& word = launch_.word(address);
  const bool atomic = made & kAtomicMark;
  if (!changed) {
    if (word.write && !atomic && !ordered(wave, word.write)) word.write |= kSharedMark;
    return true;
  }
  for (const Mark* other : {&word.write, &word.read, &word.first_read}) {
    if (LIKELY(!(*other & changed))) continue;
    if (atomic && (*other & kAtomicMark)) continue;
    if (atomic && launch_.compares && other != &word.write) continue;
    if (ordered(wave, *other)) continue;
    if (!race(wave, inst, lane, address, *other, false)) return false;
  }
  const u32 others = word.write ^ made;
  const bool same = word.write && !(others & (kAtomicMark | kSharedMark)) &&
                    launch_.event(word.write).workgroup == workgroup_ &&
                    launch_.event(word.write).wave == wave.number &&
                    launch_.event(word.write).epoch == epoch_;
  word.write = same ? made | (word.write & kBytes) : made;
  return true;
}
