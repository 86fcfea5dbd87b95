#include "audit/shadow.h"

namespace {

typedef u32 Unaligned __attribute__((aligned(1), may_alias));

// What the marks of some words have in common: whether any is made, and whether all are.
struct Made {
  bool any = false, all = false;
};
Made made_of(const Mark* marks, u32 first, u32 count) {
  if (!marks) return {};
  Mark any = 0, free = 0;
  for (u32 i = first; i < first + count; i++) {
    any |= marks[i];
    free |= marks[i] == 0;
  }
  return {any != 0, free == 0};
}

}  // namespace

Shadow::Page& Shadow::find(u64 number) {
  Page& page = pages_[number];
  recent_[number % kRecentPages] = {number, &page};
  return page;
}

Mark* Shadow::nobodys() {
  if (spare_.empty()) {
    used_.emplace_back(new Mark[kPageWords]);
  } else {
    used_.push_back(std::move(spare_.back()));
    spare_.pop_back();
  }
  memset(used_.back().get(), 0, kPageWords * sizeof(Mark));
  return used_.back().get();
}

void Shadow::reuse(Shadow& other) {
  spare_ = std::move(other.spare_);
  for (auto& marks : other.used_) {
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(marks));
  }
}

bool Shadow::read(Page& page, u32 first, u32 count, Mark made) {
  if (made_of(page.write, first, count).any) return false;
  const Made before = made_of(page.first_read, first, count);
  if (before.any && !before.all) return false;
  Mark*& marks = before.any ? page.read : page.first_read;
  if (!marks) marks = nobodys();
  Mark* const place = marks + first;
  for (u32 i = 0; i < count; i++) place[i] = made | kBytes;
  return true;
}

bool Shadow::wrote(Page& page, u32 first, u32 count, Mark made, const u8* now, const u8* old,
                   u32 size) {
  const Unaligned* x = (const Unaligned*)now;
  const Unaligned* y = (const Unaligned*)old;
  if (size % 4 && size != 2) return false;
  if (made_of(page.write, first, count).any) return false;
  u32 differ = 0;
  for (u32 i = 0; i < count; i++) differ |= x[i] ^ y[i];
  if (!differ) return true;  // no value changed
  if (made_of(page.first_read, first, count).any) return false;
  if (!page.write) page.write = nobodys();
  Mark* marks = page.write + first;
  if (size % 4 == 0) {
    for (u32 i = 0; i < count; i++) marks[i] = x[i] != y[i] ? made | kBytes : 0;
  } else {
    for (u32 i = 0; i < count; i++) {
      const u32 d = x[i] ^ y[i];
      const u32 bytes = (d & 0xffff ? 3u : 0u) | (d >> 16 ? 12u : 0u);
      marks[i] = bytes ? made | bytes : 0;
    }
  }
  return true;
}
