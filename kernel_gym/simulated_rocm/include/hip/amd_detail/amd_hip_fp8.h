// HIP 6's place of the definitions; programs include it by this name too.
#pragma once
#include <hip/hip_fp8.h>
