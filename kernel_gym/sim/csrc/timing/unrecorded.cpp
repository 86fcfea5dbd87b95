#include "timing/unrecorded.h"

#include <algorithm>

#include "mix.h"

namespace {

u64 instructions_of(const Work& work, const std::vector<BlockRange>& blocks) {
  u64 executed = 0;
  work.each_block([&](u32 block, u64 count) {
    executed += count * (blocks[block].last - blocks[block].first);
  });
  return executed;
}

// By class: one of its members, drawn with the seed; for the classes that are wanted.
std::vector<u64> members_of(const Classes& classes, const std::vector<char>& wanted, u64 seed) {
  std::vector<u64> skipped(wanted.size()), chosen;
  for (size_t c = 0; c < wanted.size(); c++) {
    skipped[c] = mix(seed + c) % classes.all()[c].members;
  }
  for (size_t w = 0; w < classes.places().size(); w++) {
    const u32 place = classes.places()[w];
    if (wanted[place] && skipped[place]-- == 0) chosen.push_back(w);
  }
  return chosen;
}

}  // namespace

std::vector<u64> unrecorded(const Classes& classes, const std::vector<BlockRange>& blocks,
                            const std::vector<std::unique_ptr<Recorder>>& recorders, u64 seed,
                            u64 most) {
  const auto& all = classes.all();
  if (classes.places().empty()) return {};
  std::vector<char> recorded(all.size(), 0), wanted(all.size(), 0);
  for (const auto& recorder : recorders) {
    if (recorder) recorded[recorder->work_class] = 1;
  }
  std::vector<std::pair<u64, u32>> together, alone;
  for (u32 c = 0; c < all.size(); c++) {
    if (recorded[c]) continue;
    const u64 executed = instructions_of(*all[c].work, blocks);
    together.emplace_back(executed * all[c].members, c);
    alone.emplace_back(executed, c);
  }
  std::sort(together.rbegin(), together.rend());
  std::sort(alone.rbegin(), alone.rend());
  u64 count = 0;
  for (size_t i = 0; i < alone.size() && count < most; i++) {
    for (const auto* order : {&together, &alone}) {
      char& want = wanted[(*order)[i].second];
      if (count < most && !want) want = 1, count++;
    }
  }
  return members_of(classes, wanted, seed);
}
