#include "timing/timing.h"

#include <algorithm>

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

void Bins::begin(u64 workgroups, u32 blocks) {
  workgroups_ = workgroups;
  blocks_ = blocks;
  bins_ = std::min({workgroups, kMaxBins, std::max<u64>(1, kMaxCounts / std::max(1u, blocks))});
  counts_.assign(bins_ * blocks, 0);
}

void Bins::add(u64 workgroup, const std::vector<u64>& counts) {
  u64* bin = counts_.data() + workgroup * bins_ / workgroups_ * blocks_;
  for (u32 b = 0; b < blocks_; b++) {
    if (counts[b]) __atomic_fetch_add(bin + b, counts[b], __ATOMIC_RELAXED);
  }
}

void Recorder::global(u32 wave, u32 instruction, const Shape& shape, u64 first_line,
                      bool write) {
  AccessCounts& counts = accounts_.sampled[instruction];
  count_lanes(counts, shape, write);
  if (write) {  // an atomic operation that returns a value waits for the L2
    counts.l1_misses += shape.line_count;
    counts.late++;
    return;
  }
  bool late = false;
  for (u32 i = 0; i < shape.line_count; i++) {
    const auto touch = l1_.touch(first_line + shape.lines[i], wave, traces[wave].size());
    if (touch == TagCache::Touch::kMissed) {
      counts.l1_misses++;
      counts.fetched += fetched_.insert(first_line + shape.lines[i]).second;
    }
    late |= touch != TagCache::Touch::kHit;
  }
  counts.late += late;
}

void count_scratch(AccessCounts& counts, u64 lanes, u32 size, bool write) {
  const u64 bytes = __builtin_popcountll(lanes) * (u64)size;
  counts.executions++;
  counts.lanes += __builtin_popcountll(lanes);
  counts.bytes += bytes;
  counts.segments += (bytes + 63) / 64;
  counts.lines += (bytes + 127) / 128;
  counts.l1_misses += (bytes + 127) / 128;
  counts.late++;
  if (write) counts.writes++;
}

void Recorder::scratch(u32 instruction, u64 lanes, u32 size, bool write) {
  count_scratch(accounts_.sampled[instruction], lanes, size, write);
}

void Recorder::scalar(u32 instruction, u64 address, u32 size) {
  AccessCounts& counts = accounts_.sampled[instruction];
  counts.executions++;
  counts.bytes += size;
  counts.lines += (address + size - 1) / 64 - address / 64 + 1;
}

void Recorder::lds(u32 instruction, const u32* places, u64 lanes, u32 size) {
  AccessCounts& counts = accounts_.sampled[instruction];
  const u64 active = __builtin_popcountll(lanes);
  counts.executions++;
  counts.lanes += active;
  counts.bytes += active * size;
  if (!lanes) return;
  const TimedInst& timed = timed_[instruction];
  counts.lds_cycles +=
      accounts_.shapes.local(instruction, places, lanes, size, timed.is_store, timed.lds_banks)
          .lds_cycles;
}
