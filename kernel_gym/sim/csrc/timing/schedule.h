// When the workgroups of a launch begin and end.
#pragma once

#include "timing/sharing.h"
#include "timing/timing.h"

// The time when the last workgroup ends if each workgroup takes the slot that is free first.
// `cycles`: of a workgroup, by class. `extra`: more of them, by workgroup; may be empty.
double schedule(const std::vector<double>& cycles, const std::vector<double>& extra,
                const Classes& classes, const ModelRequest& request, const Sharing* sharing);
