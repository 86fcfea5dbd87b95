#include "timing/excerpt.h"

#include <cmath>

namespace {

constexpr size_t kPieces = 16;
constexpr size_t kManyBarriers = 8 * kPieces;
constexpr size_t kLeastBlocks = 2;  // of a piece

}  // namespace

std::vector<Gap> gaps_of(const std::vector<u32>& trace, const std::vector<u32>& barriers,
                         double share) {
  size_t total = 0;
  for (u32 block : trace) total += barriers[block];
  const bool by_barrier = total >= kManyBarriers;
  const size_t steps = by_barrier ? total + 1 : trace.size();
  const size_t length = (steps + kPieces - 1) / kPieces;
  const size_t kept = std::max<size_t>(by_barrier ? 1 : kLeastBlocks,
                                       (size_t)std::ceil((double)length * share));
  std::vector<Gap> gaps;
  if (kept >= length) return gaps;
  const size_t last = (steps - 1) / length;
  size_t passed = 0;
  for (size_t i = 0; i < trace.size(); i++) {
    const size_t step = by_barrier ? passed : i;
    passed += barriers[trace[i]];
    const bool is_kept = step / length == last ? step + kept >= steps : step % length < kept;
    if (is_kept || (!by_barrier && barriers[trace[i]])) continue;
    if (!gaps.empty() && gaps.back().to == i) {
      gaps.back().to++;
    } else {
      gaps.push_back({i, i + 1});
    }
  }
  return gaps;
}
