// The parts of a recorded wave that a replay leaves out when its budget is too small for all of it.
#pragma once

#include <vector>

#include "timing/timing.h"

// Blocks [from, to) of a trace, which are left out.
struct Gap {
  size_t from, to;
};

// Gaps that leave about `share` of a trace, in pieces from all over it, with its beginning and its
// end. Waves of one workgroup pass the same barriers: gaps go from barrier to barrier, or keep all
// of them if there are few.
//
// `barriers`: of each block of the program.
std::vector<Gap> gaps_of(const std::vector<u32>& trace, const std::vector<u32>& barriers,
                         double share);
