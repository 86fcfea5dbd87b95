// HIP's half precision: CUDA's, by the same names.
#pragma once
#include <cuda_fp16.h>
#include <hip/hip_runtime.h>
