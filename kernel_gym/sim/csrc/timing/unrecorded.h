// Which workgroups of a launch stand for the classes that no recorded workgroup belongs to.
#pragma once

#include <memory>
#include <vector>

#include "timing/timing.h"

// One workgroup from each of at most `most` classes without a recorded one: in turn of those that do
// most work together, and of those whose workgroups do most. The seed draws the members. None if
// there are too many workgroups to know their classes.
std::vector<u64> unrecorded(const Classes& classes, const std::vector<BlockRange>& blocks,
                            const std::vector<std::unique_ptr<Recorder>>& recorders, u64 seed,
                            u64 most);
