// HIP's 8-bit floats: the OCP formats. The fnuz formats of gfx942 do not exist on NVIDIA's GPUs.
#pragma once
#include <cuda_fp8.h>
#include <hip/hip_runtime.h>

typedef __nv_fp8_e4m3 __hip_fp8_e4m3;
typedef __nv_fp8_e5m2 __hip_fp8_e5m2;
