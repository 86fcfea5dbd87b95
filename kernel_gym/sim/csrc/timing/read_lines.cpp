#include "timing/read_lines.h"

// The number of random lines that it takes on average to set so many bits. With all bits set it is
// that of the last one: about 79,000 lines.
u32 ReadLines::estimate() const {
  u32 set = 0;
  for (u64 word : bits_) set += (u32)__builtin_popcountll(word);
  double lines = 0;
  for (u32 i = 0; i < set; i++) lines += (double)kBits / (kBits - i);
  return (u32)lines;
}
