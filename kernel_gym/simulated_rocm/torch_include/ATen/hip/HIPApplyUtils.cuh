// See kernel_gym_stream.h.
#pragma once

#include <kernel_gym_stream.h>
