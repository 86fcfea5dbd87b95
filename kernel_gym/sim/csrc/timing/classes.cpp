#include "timing/classes.h"

#include <algorithm>
#include <map>

namespace {

constexpr int kBits[] = {64, 4, 2, 1};  // significant bits of a count, by level

u64 rounded_up(u64 count, int level) {
  const int bits = count ? 64 - __builtin_clzll(count) : 0, kept = kBits[level];
  if (bits <= kept) return count;
  const u64 step = 1ull << (bits - kept);
  return (count + step - 1) / step * step;
}

// Rounds counts up and joins waves that are alike then.
void normalise(Work& work, int level) {
  for (auto& [counts, alike] : work.waves) {
    for (auto& [block, count] : counts) count = rounded_up(count, level);
  }
  std::sort(work.waves.begin(), work.waves.end());
  size_t kept = 0;
  for (size_t w = 1; w < work.waves.size(); w++) {
    if (work.waves[w].first == work.waves[kept].first) {
      work.waves[kept].second += work.waves[w].second;
    } else if (++kept != w) {
      work.waves[kept] = std::move(work.waves[w]);
    }
  }
  if (!work.waves.empty()) work.waves.resize(kept + 1);
}

// The largest count of each block in any wave of two workgroups.
Work largest_of(const Work& one, const Work& other) {
  std::map<u32, u64> most;
  u64 alike = 0;
  for (const Work* work : {&one, &other}) {
    u64 waves = 0;
    for (const auto& [counts, same] : work->waves) {
      waves += same;
      for (const auto& [block, count] : counts) most[block] = std::max(most[block], count);
    }
    alike = std::max(alike, waves);
  }
  return {{{BlockCounts(most.begin(), most.end()), alike}}};
}

u64 size_of(const Work& work) {
  u64 size = 1;
  for (const auto& [counts, alike] : work.waves) size += counts.size() + 1;
  return size;
}

}  // namespace

size_t WorkHash::operator()(const Work& work) const {
  u64 hash = 0;
  const auto mix = [&](u64 word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  };
  for (const auto& [counts, alike] : work.waves) {
    mix(alike);
    for (const auto& [block, count] : counts) mix(block ^ count << 24);
  }
  return hash;
}

void Classes::begin(u64 workgroups) {
  entries_.clear();
  merged_.clear();
  order_.clear();
  all_.clear();
  held_ = 0;
  level_ = 0;
  places_.assign(workgroups <= kMostPlaces ? workgroups : 0, 0);
}

u32 Classes::current(u32 id) const {
  while (merged_[id] != id) id = merged_[id];
  return id;
}

// Adds members to a class. Classes beyond the last level form one, which has the largest counts.
u32 Classes::insert(Work work, u64 members, u64 first, u32 id) {
  if (level_ == kLevels && !entries_.empty()) {
    auto node = entries_.extract(entries_.begin());
    node.key() = largest_of(node.key(), work);
    node.mapped().members += members;
    node.mapped().first = std::min(node.mapped().first, first);
    return entries_.insert(std::move(node)).position->second.id;
  }
  const auto [place, fresh] = entries_.try_emplace(std::move(work), Entry{0, first, id});
  place->second.members += members;
  place->second.first = std::min(place->second.first, first);
  held_ += fresh ? size_of(place->first) : 0;
  return place->second.id;
}

void Classes::coarsen() {
  level_++;
  const auto old = std::move(entries_);
  entries_.clear();
  held_ = 0;
  for (const auto& [key, entry] : old) {
    Work work = key;
    normalise(work, std::min(level_, kLevels - 1));
    merged_[entry.id] = insert(std::move(work), entry.members, entry.first, entry.id);
  }
}

u32 Classes::add(u64 workgroup, const std::vector<u64>& counts, u32 blocks) {
  Work work;
  for (size_t first = 0; first < counts.size(); first += blocks) {
    BlockCounts wave;
    for (u32 b = 0; b < blocks; b++) {
      if (counts[first + b]) wave.emplace_back(b, counts[first + b]);
    }
    if (!work.waves.empty() && work.waves.back().first == wave) {
      work.waves.back().second++;
    } else {
      work.waves.emplace_back(std::move(wave), 1);
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  normalise(work, std::min(level_, kLevels - 1));
  const u32 fresh = (u32)merged_.size();
  const u32 id = insert(std::move(work), 1, workgroup, fresh);
  if (id == fresh) merged_.push_back(fresh);
  if (workgroup < places_.size()) places_[workgroup] = id;
  while (held_ > kMostCounts && level_ < kLevels) coarsen();
  return id;
}

void Classes::finish() {
  std::vector<std::pair<u64, decltype(entries_)::const_iterator>> sorted;
  for (auto place = entries_.cbegin(); place != entries_.cend(); ++place) {
    sorted.emplace_back(place->second.first, place);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  order_.assign(merged_.size(), 0);
  for (const auto& [first, place] : sorted) {
    order_[place->second.id] = (u32)all_.size();
    all_.push_back({&place->first, place->second.members});
  }
  if (merged_.empty()) places_.clear();  // a fault came before the first workgroup ended
  for (u32& place : places_) place = number(place);
}
