// Hadamard transform: one block a row; the row lies in shared memory, a barrier after each step.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void hadamard_kernel(const __half* x, float scale, __half* out, int cols) {
  extern __shared__ float row[];
  const int64_t base = (int64_t)blockIdx.x * cols;
  for (int c = threadIdx.x; c < cols; c += kThreads) row[c] = __half2float(x[base + c]);
  for (int half = 1; half < cols; half *= 2) {
    __syncthreads();
    for (int pair = threadIdx.x; pair < cols / 2; pair += kThreads) {
      const int low = pair / half * 2 * half + pair % half;
      const float a = row[low], b = row[low + half];
      row[low] = a + b;
      row[low + half] = a - b;
    }
  }
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += kThreads) out[base + c] = __float2half(row[c] * scale);
}

extern "C" int hadamard_transform(const __half* x, float scale, __half* out, int64_t rows,
                                  int64_t cols, hipStream_t stream) {
  const int bytes = cols * sizeof(float);
  hipError_t error = hipFuncSetAttribute((const void*)hadamard_kernel,
                                         hipFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != hipSuccess) return error;
  hadamard_kernel<<<dim3(rows), dim3(kThreads), bytes, stream>>>(x, scale, out, cols);
  return hipGetLastError();
}
