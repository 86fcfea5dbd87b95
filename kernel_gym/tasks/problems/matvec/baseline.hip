// Matrix times vector: one block of 256 threads a row, a tree of sums in shared memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kThreads = 256;

__global__ void matvec_kernel(const __half* a, const __half* x, __half* out, int64_t cols) {
  __shared__ float sums[kThreads];
  const int lane = threadIdx.x;
  const __half* row = a + (int64_t)blockIdx.x * cols;
  float sum = 0.0f;
  for (int64_t c = lane; c < cols; c += kThreads) sum += __half2float(row[c]) * __half2float(x[c]);
  sums[lane] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half) sums[lane] += sums[lane + half];
    __syncthreads();
  }
  if (lane == 0) out[blockIdx.x] = __float2half(sums[0]);
}

extern "C" int matvec(const __half* a, const __half* x, __half* out, int64_t rows, int64_t cols,
                      hipStream_t stream) {
  matvec_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(a, x, out, cols);
  return hipGetLastError();
}
