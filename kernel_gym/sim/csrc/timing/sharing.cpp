#include "timing/sharing.h"

#include <algorithm>

u32* Sharing::page(u64 number) {
  if (number == last_number_) return last_page_;
  Page& found = pages_[number];
  if (!found) found.reset(new u32[kPageWords]());
  last_number_ = number;
  return last_page_ = found.get();
}

void Sharing::add(const ShareEvent& event) {
  if (events_.size() < kMostEvents) {
    events_.push_back(event);
  } else {
    overflowed_ = true;
  }
}

// The number of a write. Successive writes of one block of a wave share a number.
u32 Sharing::write(u32 workgroup, u64 progress, bool follows) {
  if (!follows && !events_.empty()) {
    const ShareEvent& last = events_.back();
    if (last.kind == ShareEvent::kWrites && last.workgroup == workgroup &&
        last.progress == progress) {
      return (u32)events_.size();
    }
  }
  add({workgroup, 0, ShareEvent::kWrites, progress});
  return (u32)events_.size();
}

void Sharing::access(const Wave& wave, const Inst* inst, const u64* addresses, u64 lanes,
                     u32 size) {
  const u16 kind = table_[inst->index].sharing;
  const bool atomic = kind & kSharesAtomic;
  const u32 workgroup = wave.workgroup;
  std::vector<u32> sources;
  const auto each_word = [&](const auto& work) {
    for (u64 rest = lanes; rest; rest &= rest - 1) {
      const u64 start = addresses[__builtin_ctzll(rest)];
      for (u64 word = start / 4; word <= (start + size - 1) / 4; word++) {
        work(page(word / kPageWords)[word % kPageWords]);
      }
    }
  };
  if (kind & (kSharesReads | kSharesAtomic)) {
    each_word([&](u32 last) {
      if (!last || events_[last - 1].workgroup == workgroup) return;
      if (!sources.empty() && sources.back() == last) return;
      sources.push_back(last);
    });
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  }
  const auto waits = atomic
                         ? (kind & kSharesReads ? ShareEvent::kWaitsAtomic : ShareEvent::kFollows)
                         : ShareEvent::kWaits;
  for (u32 source : sources) add({workgroup, source, waits, wave.progress});
  if (!(kind & kSharesWrites)) return;
  const u32 number = write(workgroup, wave.progress, atomic);
  each_word([&](u32& last) { last = number; });
}

void Sharing::arrive(u32 workgroup, u64 progress) {
  if (barrier_) add({workgroup, barrier_, ShareEvent::kFollows, progress});
  barrier_ = write(workgroup, progress, true);
}

void Sharing::depart(u32 workgroup, u64 progress) {
  if (barrier_) add({workgroup, barrier_, ShareEvent::kWaits, progress});
}
