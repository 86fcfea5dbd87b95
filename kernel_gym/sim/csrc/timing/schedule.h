// When the workgroups of a launch begin and end.
#pragma once

#include "timing/sharing.h"
#include "timing/timing.h"

// When the last workgroup ends, if each goes to the place that is free first. `cycles` are those of
// a workgroup, by bin.
double schedule(const std::vector<double>& cycles, const Bins& bins, const ModelRequest& request,
                const Sharing* sharing);
