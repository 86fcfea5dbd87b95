// See kernel_gym_cuda_names.h.
#pragma once

#include <kernel_gym_cuda_names.h>
