// Programs include rocWMMA's header for the types that it brings with it. The library is not here.
#pragma once
#include <hip/hip_bfloat16.h>
#include <hip/hip_fp16.h>
