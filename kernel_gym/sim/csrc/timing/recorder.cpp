#include "timing/timing.h"

#include <algorithm>

namespace {

constexpr float kAddressLanes = 16, kSegmentBytes = 64;
constexpr u32 kLineBytes = 128;

// Cycles of the address unit.
float address_cycles(u64 lanes, u64 bytes, u64 segments) {
  return std::max({(float)lanes / kAddressLanes, (float)bytes / kSegmentBytes, (float)segments});
}

}  // namespace

TagCache::Touch TagCache::touch(u64 line, u32 wave, size_t position) {
  const u32 set = (u32)((line ^ (line >> 12) ^ (line >> 20)) % sets_);
  u64* tags = tags_[set];
  Fetch* fetches = fetches_[set];
  u32 oldest = 0;
  clock_++;
  for (u32 i = 0; i < kWays; i++) {
    if (tags[i] == line) {
      fetches[i].used = clock_;
      const bool earlier = fetches[i].wave != wave && position <= fetches[i].position;
      return earlier ? Touch::kUnderWay : Touch::kHit;
    }
    if (fetches[i].used < fetches[oldest].used) oldest = i;
  }
  tags[oldest] = line;
  fetches[oldest] = {clock_, wave, position};
  return Touch::kMissed;
}

// The event of the instruction that a wave executes; null if the trace is full. An instruction with
// two addresses has one event.
MemoryEvent* Recorder::event(u32 wave, u32 instruction) {
  WaveTrace& trace = traces[wave];
  if (trace.full) return nullptr;
  const u32 position = (u32)trace.blocks.size();
  if (!trace.events.empty()) {
    MemoryEvent& last = trace.events.back();
    if (last.position == position && last.instruction == instruction) return &last;
  }
  trace.events.push_back({position, instruction, (u32)trace.lines.size(), 0, 0, 0, 0, 0, 0});
  return &trace.events.back();
}

// A load waits for a line from beyond the L1. Another wave that fetched it at the same point of its
// trace, or later, has not brought it to the L2 yet.
void Recorder::fetch(u32 wave, MemoryEvent* event, AccessCounts& counts, u64 line, bool missed) {
  WaveTrace& trace = traces[wave];
  const size_t position = trace.blocks.size();
  const auto [place, fresh] = fetched_.try_emplace(line, wave, position);
  const bool first = fresh || (place->second.first != wave && position <= place->second.second);
  counts.l1_misses += missed;
  counts.fetched += fresh;
  if (!event) return;
  event->late = 1;
  event->moved += missed ? kLineBytes : 0;
  if (!first) return;
  trace.lines.push_back(line);
  event->line_count++;
  event->first_count += fresh;
}

void Recorder::global(u32 wave, u32 instruction, const Shape& shape, u64 first_line,
                      bool write) {
  AccessCounts& counts = accounts_.sampled[instruction];
  WaveTrace& trace = traces[wave];
  count_lanes(counts, shape, write);
  MemoryEvent* event = this->event(wave, instruction);
  const u64 lanes = __builtin_popcountll(shape.lanes);
  if (event) event->cycles += address_cycles(lanes, lanes * shape.size, shape.segments);
  const u16 sharing = timed_[instruction].sharing;
  if (write) {  // an atomic operation that returns a value waits for the L2
    counts.l1_misses += shape.line_count;
    counts.late++;
    if (!event) return;
    event->late = event->written = 1;
    event->moved += shape.segments * (u32)kSegmentBytes;
    for (u32 i = 0; i < shape.line_count && sharing & kSharesReads; i++) {
      const u64 line = first_line + shape.lines[i];
      if (!fetched_.try_emplace(~line, wave, 0).second) continue;
      trace.lines.push_back(line);
      event->line_count++;
    }
    return;
  }
  bool late = false;
  for (u32 i = 0; i < shape.line_count; i++) {
    const u64 line = first_line + shape.lines[i];
    const auto touch = sharing & kPassesL1 ? TagCache::Touch::kMissed
                                           : l1_.touch(line, wave, trace.blocks.size());
    if (touch == TagCache::Touch::kHit) continue;
    late = true;
    fetch(wave, event, counts, line, touch == TagCache::Touch::kMissed);
  }
  counts.late += late;
}

void count_scratch(AccessCounts& counts, u64 lanes, u32 size, bool write) {
  const u64 bytes = __builtin_popcountll(lanes) * (u64)size, segments = (bytes + 63) / 64;
  counts.executions++;
  counts.lanes += __builtin_popcountll(lanes);
  counts.bytes += bytes;
  counts.segments += segments;
  counts.worst = std::max(counts.worst, segments);
  counts.lines += (bytes + 127) / 128;
  counts.l1_misses += (bytes + 127) / 128;
  counts.late++;
  if (write) counts.writes++;
}

void Recorder::scratch(u32 wave, u32 instruction, u64 lanes, u32 size, bool write) {
  count_scratch(accounts_.sampled[instruction], lanes, size, write);
  if (MemoryEvent* event = this->event(wave, instruction)) {
    const u64 active = __builtin_popcountll(lanes), bytes = active * size;
    event->cycles += address_cycles(active, bytes, (bytes + 63) / 64);
    event->moved += (u32)(write ? (bytes + 63) / 64 * 64 : (bytes + 127) / 128 * 128);
    event->late = 1;
  }
}

// Scalar loads have a cache of their own with lines of 64 bytes. What misses it takes the way of
// other loads.
void Recorder::scalar(u32 wave, u32 instruction, u64 address, u32 size) {
  AccessCounts& counts = accounts_.sampled[instruction];
  WaveTrace& trace = traces[wave];
  MemoryEvent* event = this->event(wave, instruction);
  counts.executions++;
  counts.bytes += size;
  bool late = false;
  const u64 place = address - accounts_.base;
  for (u64 piece = place / 64; piece <= (place + size - 1) / 64; piece++) {
    counts.lines++;
    const auto touch = scalar_.touch(piece, wave, trace.blocks.size());
    if (touch == TagCache::Touch::kHit) continue;
    late = true;
    fetch(wave, event, counts, piece / 2, touch == TagCache::Touch::kMissed);
  }
  counts.late += late;
  if (event) event->cycles = (float)event->moved / kLineBytes;  // a cycle for 64 bytes
}

void Recorder::lds(u32 wave, u32 instruction, const u32* places, u64 lanes, u32 size) {
  if (!lanes) return;
  AccessCounts& counts = accounts_.sampled[instruction];
  const u64 active = __builtin_popcountll(lanes);
  counts.executions++;
  counts.lanes += active;
  counts.bytes += active * size;
  const TimedInst& timed = timed_[instruction];
  const u32 cycles = accounts_.shapes
                         .local(instruction, places, lanes, size, timed.is_store,
                                timed.sharing & kSharesAtomic, timed.lds_banks)
                         .lds_cycles;
  counts.lds_cycles += cycles;
  if (MemoryEvent* event = this->event(wave, instruction)) event->cycles += (float)cycles;
}
