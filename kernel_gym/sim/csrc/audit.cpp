#include "audit.h"

#include <algorithm>

namespace {

constexpr Mark kAtomicMark = 1 << 4;  // made by an atomic
constexpr Mark kSharedMark = 2 << 4;  // others have written the same value
constexpr Mark kBytes = 15;
constexpr size_t kMostSuspects = 32;
constexpr u16 kCounters = kVectorCounter | kLocalCounter | kScalarCounter;
constexpr u32 kScalars = kScalarConstants;
constexpr u16 kMostVector = 63, kMostLocal = 15;

// The bytes of `size` at `place` that lie in the word at `word`, as bits.
u8 bytes_in_word(u64 place, u32 size, u64 word) {
  u8 bits = 0;
  for (u32 b = 0; b < 4; b++) bits |= (word + b >= place && word + b < place + size) << b;
  return bits;
}

bool atomic_only(u16 kind) { return kind & kAtomicAccess; }
// A load that writes LDS: reads one memory and writes the other.
bool copies(u16 kind) { return (kind & kReadsMemory) && (kind & kWritesMemory) && !atomic_only(kind); }

}  // namespace

// ---- the launch
AuditLaunch::Word& AuditLaunch::word(u64 address) {
  const u64 index = address / 4, page = index / kPageWords;
  if (page != recent_page_) {
    auto& found = pages_[page];
    if (!found) found.reset(new Word[kPageWords]());
    recent_ = found.get();
    recent_page_ = page;
  }
  return recent_[index % kPageWords];
}

// Whether the workgroup of an event has released what it did, before tick `acquired`.
bool AuditLaunch::released(const Event& event, u32 acquired) const {
  const auto& ticks = releases[event.workgroup];
  const auto first = std::upper_bound(ticks.begin(), ticks.end(), event.tick);
  return first != ticks.end() && *first <= acquired;
}

// ---- a workgroup
Audit::Audit(AuditLaunch& launch, u64 workgroup, u32 waves, u32 lds_size)
    : launch_(launch), workgroup_(workgroup), waves_(waves) {
  for (WaveState& state : waves_) {
    state.defined.assign(launch.rows, 0);
    state.defined[0] = kAllLanes;  // the thread's number
    state.pending.assign(launch.rows + kScalars, 0);
  }
  lds_.resize(lds_size / 4 + 1);
  lds_writer_.resize(lds_.size());
  lds_reader_.resize(lds_.size());
  lds_written_.resize(lds_.size());
  lds_defined_.assign(4 * lds_.size(), 0);
}

void Audit::barrier() {
  epoch_++;
  std::fill(lds_.begin(), lds_.end(), LdsWord());
  u32 acquired = 0;
  for (const WaveState& state : waves_) acquired = std::max(acquired, state.acquired);
  for (WaveState& state : waves_) {
    state.acquired = acquired;
    state.acquired_in_epoch = false;
    state.landed[0] = state.issued[0] - (u32)state.local.size();
    state.landed[1] = state.issued[1] - (u32)state.vector.size();
  }
}

void Audit::grid_barrier() {
  barrier();
  launch_.releases[workgroup_].push_back(launch_.tick + 1);
  for (WaveState& state : waves_) state.acquired = launch_.tick + 1;
}

// ---- instructions in order. Those without an operation (waits, fences) are only in the table.
void Audit::block(Wave& wave, const Inst* head) {
  WaveState& state = waves_[wave.number];
  if (state.last && state.last + 1 == head) {
    while (state.cursor < head->index) step(wave, state, state.cursor++, head);
  }
  state.cursor = head->index;
  state.last = head;
}

bool Audit::before(Wave& wave, const Inst* inst) {
  WaveState& state = waves_[wave.number];
  while (state.cursor <= inst->index && state.cursor < launch_.table.size()) {
    if (!step(wave, state, state.cursor++, inst)) return false;
  }
  return true;
}

bool Audit::after(Wave& wave, const Inst* inst) {
  waves_[wave.number].last = inst;
  bool good = wave.status != Status::kFaulted;
  for (const Write& write : writes_) good = good && finish(wave, inst, write);
  writes_.clear();
  return good;
}

bool Audit::step(Wave& wave, WaveState& state, u32 index, const Inst* inst) {
  const AuditInst& info = launch_.table[index];
  if (info.kind & kWaits) wait(state, info);
  if (info.kind & kReleases) launch_.releases[workgroup_].push_back(++launch_.tick);
  if (info.kind & kAcquires) {
    state.acquired = launch_.tick;
    state.acquired_in_epoch = true;
  }
  u32 load = 0;
  bool early = false;
  for (const Registers& range : info.reads) early = early || in_flight(state, range, 0, load);
  // Results of one kind arrive in order, so that a later load may overwrite an earlier one.
  for (const Registers& range : info.writes) {
    early = early || in_flight(state, range, info.kind & kCounters, load);
  }
  if (early) {
    raise_fault(wave, inst, FaultKind::kMissingWait, 0, 0, 0);
    wave.fault.instruction = index;
    wave.fault.other_instruction = load;
    return false;
  }
  note_reads(wave, state, info, index);
  if (info.kind & kCounters) start_load(state, info, index);
  return true;
}

void Audit::wait(WaveState& state, const AuditInst& info) {
  while (state.vector.size() > info.vector_limit) {
    land(state, state.vector.front());
    state.vector.erase(state.vector.begin());
  }
  const bool unordered = std::any_of(state.local.begin(), state.local.end(), [](const Flight& f) {
    return f.counter == kScalarCounter;
  });
  if (unordered && info.local_limit) return;  // any of them may be the one that is missing
  while (state.local.size() > info.local_limit) {
    land(state, state.local.front());
    state.local.erase(state.local.begin());
  }
}

void Audit::land(WaveState& state, const Flight& flight) {
  const u32 base = flight.target.count & kScalarRange ? launch_.rows : 0;
  for (u32 i = 0; i < (flight.target.count & ~kScalarRange); i++) {
    state.pending[base + flight.target.first + i]--;
  }
}

// Whether a register of the range is the target of a load under way (of another kind than
// `ignored`); `instruction` becomes that load.
bool Audit::in_flight(const WaveState& state, const Registers& range, u16 ignored,
                      u32& instruction) {
  const u32 count = range.count & ~kScalarRange;
  const u32 base = range.count & kScalarRange ? launch_.rows : 0;
  bool pending = false;
  for (u32 i = 0; i < count; i++) pending |= state.pending[base + range.first + i] != 0;
  if (LIKELY(!pending)) return false;
  for (const auto* queue : {&state.vector, &state.local}) {
    for (const Flight& flight : *queue) {
      const u32 other = flight.target.count & ~kScalarRange;
      const bool same_file = !((flight.target.count ^ range.count) & kScalarRange);
      if (!same_file || flight.counter & ignored) continue;
      if (flight.target.first < range.first + count && range.first < flight.target.first + other) {
        instruction = flight.instruction;
        return true;
      }
    }
  }
  return false;
}

void Audit::start_load(WaveState& state, const AuditInst& info, u32 index) {
  const Registers& target = info.writes[0];
  const u32 base = target.count & kScalarRange ? launch_.rows : 0;
  const auto start = [&](std::vector<Flight>& queue, u16 counter) {
    queue.push_back({target, index, counter});
    for (u32 i = 0; i < (target.count & ~kScalarRange); i++) {
      state.pending[base + target.first + i]++;
    }
  };
  // The hardware lets no more be under way than its counters can count.
  if (state.vector.size() >= kMostVector) wait(state, {kWaits, kMostVector - 1, 0xffff, 0, {}, {}});
  if (state.local.size() >= kMostLocal) wait(state, {kWaits, 0xffff, kMostLocal - 1, 0, {}, {}});
  state.issued[0] += (info.kind & (kLocalCounter | kScalarCounter)) != 0;
  state.issued[1] += (info.kind & kVectorCounter) != 0;
  if (info.kind & kVectorCounter) start(state.vector, kVectorCounter);
  if (info.kind & kLocalCounter) start(state.local, kLocalCounter);
  if (info.kind & kScalarCounter) start(state.local, kScalarCounter);
}

// Rows that are read before they are written become suspects, once each.
void Audit::note_reads(Wave& wave, WaveState& state, const AuditInst& info, u32 index) {
  const u64 exec = wave.exec();
  for (const Registers& range : info.reads) {
    if (range.count & kScalarRange) continue;
    for (u32 row = range.first; row < (u32)range.first + range.count; row++) {
      const u64 missing = exec & ~state.defined[row];
      if (LIKELY(!missing) || launch_.row_suspects[row]) continue;
      launch_.row_suspects[row] = 1;
      if (launch_.suspects.size() >= kMostSuspects) continue;
      launch_.suspects.push_back({kRegisterSuspect, index, wave.number,
                                  (u32)__builtin_ctzll(missing), workgroup_, row, nullptr, 0, 0});
    }
  }
  for (const Registers& range : info.writes) {
    if (range.count & kScalarRange) continue;
    for (u32 row = range.first; row < (u32)range.first + range.count; row++) {
      state.defined[row] |= info.kind & kAllLanesWritten ? kAllLanes : exec;
    }
  }
}

// ---- accesses
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
      const bool whole = word >= addresses[l] && word + 4 <= end;
      const u8 bytes = whole ? kBytes : bytes_in_word(addresses[l], size, word);
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
  writes_.emplace_back();
  Write& write = writes_.back();
  write.lanes = lanes;
  write.size = size;
  write.source = 1 + (u32)writes_.size();
  write.local = local;
  for (; lanes; lanes &= lanes - 1) {
    const u32 l = __builtin_ctzll(lanes);
    write.addresses[l] = addresses[l];
    memcpy(write.old + 16 * l, (const void*)addresses[l], size);
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
    if (memcmp(now, old, write.size) != 0) {
      for (u32 b = 0; b < write.size; b++) changed |= (u32)(now[b] != old[b]) << b;
    }
    if (write.local) {
      const u32 place = (u32)(start - (u64)wave.lds);
      if (!wrote_lds(wave, inst, l, place, write.size, changed)) return false;
      continue;
    }
    for (u64 word = start & ~3ull; word < start + write.size; word += 4) {
      const bool whole = word >= start && word + 4 <= start + write.size;
      const u8 bytes = whole ? kBytes : bytes_in_word(start, write.size, word);
      const i64 shift = (i64)(word - start);
      const u8 now_changed = (u8)(shift >= 0 ? changed >> shift : changed << -shift) & kBytes;
      if (!wrote_word(wave, inst, l, word, made | bytes, now_changed)) return false;
    }
  }
  // In LDS compilers let lanes that hold the same sum, but for its rounding, all store it.
  return write.local || atomic_only(kind) || copies(kind) || !lost(wave, inst, write);
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

// ---- LDS: who has touched each byte since the last barrier
bool Audit::lds_race(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u16 others,
                     u32 instruction) {
  if (!others || waves_[wave.number].acquired_in_epoch) return false;
  raise_fault(wave, inst, FaultKind::kLdsRace, lane, place, size);
  wave.fault.other_instruction = instruction;
  wave.fault.other_wave = __builtin_ctz(others);
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

bool Audit::read_lds(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size) {
  u32 undefined = 0;
  for (u32 b = 0; b < size; b++) undefined |= !lds_defined_[place + b];
  if (UNLIKELY(undefined)) suspect_lds(wave, inst->index, lane, place, size);
  if (waves_.size() == 1 || atomic_only(launch_.table[inst->index].kind)) return true;
  if (in_flight_at_barrier(wave, inst, lane, place, size)) return false;
  const u16 mine = (u16)(1u << wave.number);
  if (!(place & 3) && size >= 4) {  // whole words that only this wave has written
    const u64 all = 0x0001000100010001ull << wave.number;
    u64 foreign = 0;
    for (u32 w = place / 4; w < (place + size) / 4; w++) {
      LdsWord& word = lds_[w];
      u64 writers, atomics, readers;
      memcpy(&writers, word.writers, 8);
      memcpy(&atomics, word.atomics, 8);
      memcpy(&readers, word.readers, 8);
      foreign |= (writers | atomics) & ~all;
      readers |= all;
      memcpy(word.readers, &readers, 8);
      lds_reader_[w] = inst->index;
    }
    if (LIKELY(!foreign)) return true;
  }
  for (u32 p = place; p < place + size; p++) {
    LdsWord& word = lds_[p / 4];
    u16 others = launch_.compares ? 0 : word.atomics[p % 4] & ~mine;
    if (!(word.writers[p % 4] & mine)) others |= word.writers[p % 4];
    if (lds_race(wave, inst, lane, place, size, others, lds_writer_[p / 4])) return false;
    word.readers[p % 4] |= mine;
    lds_reader_[p / 4] = inst->index;
  }
  return true;
}

// A barrier does not wait for LDS: a write that was under way when its wave came to the last one may
// not have landed yet.
bool Audit::in_flight_at_barrier(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size) {
  if (waves_[wave.number].acquired_in_epoch) return false;
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

bool Audit::wrote_lds(Wave& wave, const Inst* inst, u32 lane, u32 place, u32 size, u32 changed) {
  memset(lds_defined_.data() + place, 1, size);
  if (waves_.size() == 1) return true;
  const u16 mine = (u16)(1u << wave.number);
  const u16 kind = launch_.table[inst->index].kind;
  const bool atomic = atomic_only(kind), vector = copies(kind);
  for (u32 b = 0; b < size; b++) {
    const u32 p = place + b, part = p % 4;
    LdsWord& word = lds_[p / 4];
    if (changed >> b & 1) {
      const u16 writers = word.writers[part] & ~mine, readers = word.readers[part] & ~mine;
      const u16 atomics = atomic ? 0 : word.atomics[part] & ~mine;
      const u16 seen = atomic && launch_.compares ? 0 : readers;
      if (lds_race(wave, inst, lane, place, size, writers | atomics, lds_writer_[p / 4]) ||
          lds_race(wave, inst, lane, place, size, seen, lds_reader_[p / 4])) {
        return false;
      }
      if (!atomic) word.writers[part] = mine;
      lds_writer_[p / 4] = inst->index;
      lds_written_[p / 4] = {epoch_, waves_[wave.number].issued[vector], (u16)wave.number, vector};
    } else if (!atomic && word.writers[part]) {
      word.writers[part] |= mine;  // the same value again
    }
    if (atomic) word.atomics[part] |= mine;
  }
  return true;
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
