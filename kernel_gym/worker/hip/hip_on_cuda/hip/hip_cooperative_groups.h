// HIP's cooperative groups: CUDA's, in the same namespace.
#pragma once
#include <cooperative_groups.h>
#include <hip/hip_runtime.h>
