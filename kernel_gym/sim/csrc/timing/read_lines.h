// How many lines of memory a workgroup reads.
#pragma once

#include <string.h>

#include "wave.h"

// An estimate of the number of different lines that were added, by linear counting (Whang et al.
// 1990): a line sets one of many bits, and the number of bits that are set tells how many lines there
// were. It is the same for every order of the lines.
class ReadLines {
 public:
  void clear() { memset(bits_, 0, sizeof bits_); }
  void add(u64 line) {
    line *= 0x9e3779b97f4a7c15ull;
    line = (line ^ line >> 32) * 0xd6e8feb86659fd93ull;
    const u32 bit = (u32)(line >> 51);
    bits_[bit / 64] |= 1ull << bit % 64;
  }
  u32 estimate() const;

 private:
  static constexpr u32 kBits = 1 << 13;
  u64 bits_[kBits / 64];
};
