#include "recorder.h"

#include <algorithm>
#include <cstring>

namespace {

constexpr u32 kL1Sets = 64, kL1Ways = 4;  // 32 KB of 128-byte lines
constexpr u32 kBanks = 32;

}  // namespace

TagCache::TagCache(u32 sets, u32 ways)
    : sets_(sets), ways_(ways), tags_((size_t)sets * ways, ~0ull), used_((size_t)sets * ways, 0) {}

bool TagCache::touch(u64 line) {
  const size_t first = (size_t)((line ^ (line >> 12) ^ (line >> 20)) % sets_) * ways_;
  size_t oldest = first;
  clock_++;
  for (size_t i = first; i < first + ways_; i++) {
    if (tags_[i] == line) {
      used_[i] = clock_;
      return true;
    }
    if (used_[i] < used_[oldest]) oldest = i;
  }
  tags_[oldest] = line;
  used_[oldest] = clock_;
  return false;
}

namespace {

// Distinct values of up to 128, in any order: a small table with open addressing.
u32 count_distinct(const u64* values, u32 count) {
  constexpr u32 kSlots = 256;
  u64 table[kSlots];
  memset(table, 0xff, sizeof table);
  u32 distinct = 0;
  for (u32 i = 0; i < count; i++) {
    u32 slot = (u32)(values[i] * 0x9e3779b97f4a7c15ull >> 56);
    while (table[slot] != ~0ull && table[slot] != values[i]) slot = (slot + 1) % kSlots;
    distinct += table[slot] == ~0ull;
    table[slot] = values[i];
  }
  return distinct;
}

}  // namespace

void count_access(AccessCounts& counts, const u64* addresses, u64 lanes, u64 low, u64 high,
                  u32 size, bool write) {
  const u64 active = __builtin_popcountll(lanes);
  if (high - low <= 2 * active * size) {  // every line in between is touched
    count_dense(counts, active, active * size, low, high, write);
    return;
  }
  counts.executions++;
  counts.lanes += active;
  counts.bytes += active * size;
  counts.writes += write;
  u64 segments[2 * kLanes];
  u32 count = 0, lines = 0;
  u64 before = 0, line = ~0ull;
  bool ascending = true;
  for (u64 rest = lanes; rest; rest &= rest - 1) {
    const u64 address = addresses[__builtin_ctzll(rest)];
    const u64 first = address >> 6, last = (address + size - 1) >> 6;
    if (!count || before != first) segments[count++] = first;
    if (last != first) segments[count++] = last;
    ascending &= first >= before;
    before = last;
    lines += (first >> 1 != line) + (last >> 1 != first >> 1);
    line = last >> 1;
  }
  if (ascending) {
    counts.segments += count;
    counts.lines += lines;
    return;
  }
  counts.segments += count_distinct(segments, count);
  for (u32 i = 0; i < count; i++) segments[i] >>= 1;
  counts.lines += count_distinct(segments, count);
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

Recorder::Recorder(u32 instructions, u32 waves, u64 base)
    : counts(instructions), traces(waves), base_(base), l1_(kL1Sets, kL1Ways) {}

void Recorder::global(u32 instruction, const u64* addresses, u64 lanes, u32 size, bool write) {
  AccessCounts& counts_of = counts[instruction];
  const u64 active = __builtin_popcountll(lanes);
  counts_of.executions++;
  counts_of.lanes += active;
  counts_of.bytes += active * size;
  if (write) counts_of.writes++;
  u64 segments[2 * kLanes];
  u32 count = 0;
  u64 last = ~0ull;
  for (u64 rest = lanes; rest; rest &= rest - 1) {
    const u64 address = addresses[__builtin_ctzll(rest)] - base_;
    const u64 end = (address + size - 1) >> 6;
    for (u64 segment = address >> 6; segment <= end; segment++) {
      if (segment != last) segments[count++] = segment;
      last = segment;
    }
  }
  if (!std::is_sorted(segments, segments + count)) std::sort(segments, segments + count);
  u64 last_line = ~0ull;
  for (u32 i = 0; i < count; i++) {
    if (i && segments[i] == segments[i - 1]) continue;
    counts_of.segments++;
    const u64 line = segments[i] >> 1;
    if (line == last_line) continue;
    last_line = line;
    counts_of.lines++;
    if (write || !l1_.touch(line)) counts_of.l1_misses++;
  }
}

void count_scratch(AccessCounts& counts_of, u64 lanes, u32 size, bool write) {
  const u64 bytes = __builtin_popcountll(lanes) * (u64)size;
  counts_of.executions++;
  counts_of.lanes += __builtin_popcountll(lanes);
  counts_of.bytes += bytes;
  counts_of.segments += (bytes + 63) / 64;
  counts_of.lines += (bytes + 127) / 128;
  counts_of.l1_misses += (bytes + 127) / 128;
  if (write) counts_of.writes++;
}

void Recorder::scratch(u32 instruction, u64 lanes, u32 size, bool write) {
  count_scratch(counts[instruction], lanes, size, write);
}

void Recorder::scalar(u32 instruction, u64 address, u32 size) {
  AccessCounts& counts_of = counts[instruction];
  counts_of.executions++;
  counts_of.bytes += size;
  counts_of.lines += (address + size - 1) / 64 - address / 64 + 1;
}

// Bank conflicts: 32 lanes a cycle for 4 bytes, 16 for 8, 8 for 16; distinct words in one bank
// take a cycle each.
void Recorder::lds(u32 instruction, const u32* addresses, u64 lanes, u32 offset, u32 size) {
  AccessCounts& counts_of = counts[instruction];
  const u64 active = __builtin_popcountll(lanes);
  counts_of.executions++;
  counts_of.lanes += active;
  counts_of.bytes += active * size;
  const u32 words = (size + 3) / 4;
  const int group = words >= 4 ? 8 : words >= 2 ? 16 : 32;
  for (int first = 0; first < kLanes; first += group) {
    u32 bank_words[kBanks][32];
    u32 depth[kBanks] = {};
    u32 deepest = 0;
    for (int l = first; l < first + group; l++) {
      if (!(lanes >> l & 1)) continue;
      for (u32 i = 0; i < words; i++) {
        const u32 word = ((addresses[l] + offset) >> 2) + i;
        const u32 bank = word % kBanks;
        u32 j = 0;
        while (j < depth[bank] && bank_words[bank][j] != word) j++;
        if (j < depth[bank]) continue;
        bank_words[bank][depth[bank]++] = word;
        deepest = std::max(deepest, depth[bank]);
      }
    }
    counts_of.lds_cycles += deepest;
  }
}
