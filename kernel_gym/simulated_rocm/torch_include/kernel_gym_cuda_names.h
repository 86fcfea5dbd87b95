// CUDA's names in host code of PyTorch extensions. PyTorch for ROCm translates them when it builds
// an extension; here they are other names of HIP's.
#pragma once

#include <kernel_gym_stream.h>

using cudaStream_t = hipStream_t;
using cudaError_t = hipError_t;

#define cudaSuccess hipSuccess
#define cudaGetLastError hipGetLastError
#define cudaGetErrorString hipGetErrorString
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaStreamSynchronize hipStreamSynchronize
