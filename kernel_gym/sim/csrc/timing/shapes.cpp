#include "timing/shapes.h"

#include <algorithm>

namespace {

constexpr u32 kMostBanks = 64;

bool same(const Shape& shape, const u32* relative, u64 lanes, u32 phase, u32 size) {
  U differ = splat((u32)(shape.lanes != lanes) | (shape.phase ^ phase) | (shape.size ^ size));
  for (int c = 0; c < kChunks; c++) differ |= load(relative, c) ^ load(shape.relative, c);
  return !any_lane((U)(differ != 0u));
}

// A hash of some lanes. It only has to differ for most shapes of an instruction.
u32 hash_of(const u32* relative, u32 phase) {
  u32 hash = phase;
  for (int l : {1, 2, 4, 8, 16, 32, 63}) hash = hash * 0x9e3779b1u + relative[l];
  return hash;
}

void clear_inactive(u32* row, u64 lanes) {
  if (LIKELY(lanes == kAllLanes)) return;
  for (int c = 0; c < kChunks; c++) put(row, c, load(row, c) & lane_mask(lanes, c));
}

// Sorts numbers and drops repeated ones; returns how many are left.
u32 sort_unique(u64* numbers, u32 count) {
  constexpr u64 kWords = 64;  // of a set of small numbers
  u64 largest = 0;
  for (u32 i = 0; i < count; i++) largest = std::max(largest, numbers[i]);
  const bool sorted = std::is_sorted(numbers, numbers + count);
  if (sorted || largest >= 64 * kWords) {
    if (!sorted) std::sort(numbers, numbers + count);
    return (u32)(std::unique(numbers, numbers + count) - numbers);
  }
  u64 set[kWords] = {};
  for (u32 i = 0; i < count; i++) set[numbers[i] / 64] |= 1ull << numbers[i] % 64;
  u32 left = 0;
  for (u64 w = 0; w <= largest / 64; w++) {
    for (u64 rest = set[w]; rest; rest &= rest - 1) {
      numbers[left++] = 64 * w + __builtin_ctzll(rest);
    }
  }
  return left;
}

void find_lines(Shape& shape, const u64* addresses, u64 low) {
  u64 segments[2 * kLanes];
  u32 count = 0;
  for (u64 rest = shape.lanes; rest; rest &= rest - 1) {
    const u64 place = addresses[__builtin_ctzll(rest)] - low + shape.phase;
    const u64 first = place >> 6, last = (place + shape.size - 1) >> 6;
    if (!count || segments[count - 1] != first) segments[count++] = first;
    if (last != first) segments[count++] = last;
  }
  shape.segments = sort_unique(segments, count);
  shape.line_count = 0;
  for (u32 i = 0; i < shape.segments; i++) {
    if (i && segments[i] >> 1 == segments[i - 1] >> 1) continue;
    shape.lines[shape.line_count++] = (u32)(segments[i] >> 1);
  }
}

// The order in which fours of lanes take part in reads of 12 and 16 bytes, in each half of a wave:
// measured for ds_read_b96 with 32 banks and for ds_read_b128 with 64 (HipKittens@f09e9685, on an
// MI355X); ds_read_b128 with 32 banks is printed there as an example.
constexpr int kFours32[] = {0, 5, 1, 4, 2, 7, 3, 6};
constexpr int kFours64[] = {0, 3, 5, 6, 1, 2, 4, 7};

// The lane that takes part in an access as number `n`. Writes go in order (AMD, documentation of
// Composable Kernel).
int lane_of(int n, u32 words, bool write, u32 banks) {
  if (write || words < 3) return n;
  const int* fours = banks == kMostBanks && words == 4 ? kFours64 : kFours32;
  return (n & 32) + 4 * fours[(n & 31) / 4] + (n & 3);
}

// Lanes that take part in one cycle without conflicts.
int lanes_a_cycle(u32 words, u32 banks) {
  return words == 1 ? 32 : words == 2 || words == 4 ? (int)(banks / words) : 8;
}

// Bank conflicts: distinct words in one bank take a cycle each. So do equal ones of an atomic
// operation, each of which needs the result of the one before.
void find_conflicts(Shape& shape, bool write, bool atomic, u32 banks) {
  const u32 words = (shape.size + 3) / 4;
  const int group = lanes_a_cycle(words, banks);
  shape.lds_cycles = 0;
  for (int first = 0; first < kLanes; first += group) {
    u32 waiting[2 * kLanes], last[kMostBanks];
    u32 count = 0;
    for (int n = first; n < first + group; n++) {
      const int l = lane_of(n, words, write, banks);
      if (!(shape.lanes >> l & 1)) continue;
      const u32 place = shape.relative[l] + shape.phase;
      for (u32 i = 0; i < words; i++) waiting[count++] = (place + 4 * i) >> 2;
    }
    for (; count; shape.lds_cycles++) {  // each bank serves one of its words
      for (u32 i = 0; i < count; i++) last[waiting[i] % banks] = atomic ? i : waiting[i];
      u32 left = 0;
      for (u32 i = 0; i < count; i++) {
        const u32 word = waiting[i];
        waiting[left] = word;
        left += last[word % banks] != (atomic ? i : word);
      }
      count = left;
    }
  }
}

}  // namespace

std::pair<Shape&, bool> Shapes::find(u32 instruction, const u32* relative, u64 lanes, u32 phase,
                                     u32 size) {
  if (UNLIKELY(!kept_[instruction])) kept_[instruction].reset(new Kept);
  Kept& kept = *kept_[instruction];
  const u32 hash = hash_of(relative, phase);
  for (u32 i = 0; i < kept.count; i++) {
    if (kept.hashes[i] != hash) continue;
    Shape& shape = *kept.shapes[i];
    if (LIKELY(same(shape, relative, lanes, phase, size))) return {shape, false};
  }
  const u32 place = kept.next++ % kKept;
  kept.count = std::max(kept.count, place + 1);
  if (!kept.shapes[place]) kept.shapes[place].reset(new Shape);
  kept.hashes[place] = hash;
  Shape& shape = *kept.shapes[place];
  memcpy(shape.relative, relative, sizeof shape.relative);
  shape.lanes = lanes;
  shape.phase = phase;
  shape.size = size;
  return {shape, true};
}

const Shape& Shapes::global(u32 instruction, const u64* addresses, u64 lanes, u64 low, u64 high,
                            u32 phase, u32 size) {
  alignas(64) u32 relative[kLanes];
  for (int l = 0; l < kLanes; l++) relative[l] = (u32)(addresses[l] - low);
  clear_inactive(relative, lanes);
  const auto [shape, fresh] = find(instruction, relative, lanes, phase, size);
  if (LIKELY(!fresh)) return shape;
  find_lines(shape, addresses, low);
  if (UNLIKELY(high - low > ~0u)) shape.phase = ~0u;  // `relative` is ambiguous
  return shape;
}

const Shape& Shapes::local(u32 instruction, const u32* places, u64 lanes, u32 size, bool write,
                           bool atomic, u32 banks) {
  alignas(64) u32 relative[kLanes];
  const u32 start = places[__builtin_ctzll(lanes)];
  for (int c = 0; c < kChunks; c++) put(relative, c, load(places, c) - start);
  clear_inactive(relative, lanes);
  const auto [shape, fresh] = find(instruction, relative, lanes, start & 3, size);
  if (UNLIKELY(fresh)) find_conflicts(shape, write, atomic, banks);
  return shape;
}
