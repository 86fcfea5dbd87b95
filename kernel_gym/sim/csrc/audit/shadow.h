// Shadow memory of an audited launch: the last accesses to each word of global memory.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "lanes.h"

// An access to a word: number of an event << 6 | flags << 4 | bytes of the word. 0: no access.
using Mark = u32;
constexpr Mark kAtomicMark = 1 << 4;  // made by an atomic
constexpr Mark kSharedMark = 2 << 4;  // other waves have written the same value
constexpr Mark kBytes = 15;

class Shadow {
 public:
  static constexpr u64 kPageWords = 1024;
  // The marks of a page's words: most pages are only read, or only written.
  struct Page {
    Mark* write = nullptr;
    Mark* first_read = nullptr;
    Mark* read = nullptr;  // the last one
  };
  Page& page(u64 address) {
    const u64 number = address / (4 * kPageWords);
    const Recent& recent = recent_[number % kRecentPages];
    return LIKELY(recent.number == number) ? *recent.page : find(number);
  }
  // Marks for every word of the page, all 0.
  Mark* nobodys();

  // Marks `count` whole words of one page from `first` on, accessed by lanes of `size` bytes.
  // Returns false and marks nothing if any of them needs a closer look.
  bool read(Page& page, u32 first, u32 count, Mark made);
  bool wrote(Page& page, u32 first, u32 count, Mark made, const u8* now, const u8* old, u32 size);

  // Takes over the storage of a finished launch.
  void reuse(Shadow& other);

 private:
  static constexpr u64 kRecentPages = 4096;
  static constexpr size_t kMostSpare = 1 << 13;  // 32 MiB
  struct Recent {
    u64 number = ~0ull;
    Page* page = nullptr;
  };
  Page& find(u64 number);
  std::unordered_map<u64, Page> pages_;
  Recent recent_[kRecentPages];
  std::vector<std::unique_ptr<Mark[]>> used_, spare_;
};
