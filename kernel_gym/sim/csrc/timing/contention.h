// How often atomic operations touched each cache line in a launch.
#pragma once

#include <vector>

#include "lanes.h"

class LineCounts {
 public:
  // Requests of one instruction: one for each 64-byte piece, and one for each lane that accesses an
  // address after another lane.
  void add(const u64* addresses, u64 lanes, u64 base);
  void add(const LineCounts& other);

  u64 requests() const { return requests_; }
  u64 lines() const { return used_; }
  u64 hottest() const;  // requests to the line that has most

 private:
  struct Line {
    u64 number;
    u64 count;  // 0: the entry is free
  };
  void count(u64 line, u64 times);
  void grow();

  std::vector<Line> table_;
  u64 used_ = 0, requests_ = 0;
};
