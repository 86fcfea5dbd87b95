#include "timing/classes.h"

#include <algorithm>

namespace {

constexpr int kBits[] = {64, 4, 2, 1};  // significant bits of a count, by level

u64 rounded_up(u64 count, int level) {
  const int bits = count ? 64 - __builtin_clzll(count) : 0, kept = kBits[level];
  if (bits <= kept) return count;
  const u64 step = 1ull << (bits - kept);
  return (count + step - 1) / step * step;
}

}  // namespace

size_t WorkHash::operator()(const Work& work) const {
  u64 hash = work.slowest;
  for (const auto& [block, count] : work.counts) {
    hash = (hash ^ block ^ count << 24) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
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
    const auto old = entries_.begin();
    Work largest;
    std::merge(old->first.counts.begin(), old->first.counts.end(), work.counts.begin(),
               work.counts.end(), std::back_inserter(largest.counts));
    largest.slowest = std::max(work.slowest, old->first.slowest);
    auto& counts = largest.counts;  // equal blocks are neighbours, the larger count is the second
    for (size_t i = 0; i + 1 < counts.size(); i++) {
      if (counts[i].first == counts[i + 1].first) counts[i].second = 0;
    }
    counts.erase(std::remove_if(counts.begin(), counts.end(), [](auto& c) { return !c.second; }),
                 counts.end());
    auto node = entries_.extract(old);
    node.key() = std::move(largest);
    node.mapped().members += members;
    node.mapped().first = std::min(node.mapped().first, first);
    return entries_.insert(std::move(node)).position->second.id;
  }
  const auto [place, fresh] = entries_.try_emplace(std::move(work), Entry{0, first, id});
  place->second.members += members;
  place->second.first = std::min(place->second.first, first);
  held_ += fresh ? place->first.counts.size() + 1 : 0;
  return place->second.id;
}

void Classes::coarsen() {
  level_++;
  auto old = std::move(entries_);
  entries_.clear();
  held_ = 0;
  for (auto& [key, entry] : old) {
    Work work = key;
    if (level_ < kLevels) {
      for (auto& [block, count] : work.counts) count = rounded_up(count, level_);
      work.slowest = rounded_up(work.slowest, level_);
    }
    merged_[entry.id] = insert(std::move(work), entry.members, entry.first, entry.id);
  }
}

u32 Classes::add(u64 workgroup, const std::vector<u64>& counts, u64 slowest) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Work& work = scratch_;
  const int level = std::min(level_, kLevels - 1);
  work.counts.clear();
  work.slowest = rounded_up(slowest, level);
  for (u32 b = 0; b < counts.size(); b++) {
    if (counts[b]) work.counts.emplace_back(b, rounded_up(counts[b], level));
  }
  u32 id;
  const auto place = level_ < kLevels ? entries_.find(work) : entries_.end();
  if (place != entries_.end()) {
    Entry& entry = place->second;
    entry.members++;
    entry.first = std::min(entry.first, workgroup);
    id = entry.id;
  } else {
    const u32 fresh = (u32)merged_.size();
    id = insert(work, 1, workgroup, fresh);
    if (id == fresh) merged_.push_back(fresh);
  }
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
  for (u32& place : places_) place = number(place);
}
