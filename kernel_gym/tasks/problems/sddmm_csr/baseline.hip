// Sampled product: one block of 64 threads a row; the block adds up each edge's product.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__device__ float block_sum(float value) {
  for (int step = warpSize / 2; step > 0; step /= 2) value += __shfl_xor(value, step);
  if (warpSize >= kThreads) return value;
  __shared__ float parts[kThreads];  // on a GPU whose waves are narrower than the block
  parts[threadIdx.x] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int wave = 0; wave < kThreads; wave += warpSize) sum += parts[wave];
  __syncthreads();
  return sum;
}

__global__ void sddmm_kernel(const __half* q, const __half* k, const int32_t* start,
                             const int32_t* column, float scale, float* out, int64_t width) {
  const int64_t row = blockIdx.x;
  for (int32_t j = start[row]; j < start[row + 1]; ++j) {
    const __half* other = k + column[j] * width;
    float part = 0.0f;
    for (int64_t c = threadIdx.x; c < width; c += kThreads) {
      part += __half2float(q[row * width + c]) * __half2float(other[c]);
    }
    const float total = block_sum(part);
    if (threadIdx.x == 0) out[j] = total * scale;
  }
}

extern "C" int sddmm_csr(const __half* q, const __half* k, const int32_t* start, const int32_t*
                         column, float scale, float* out, int64_t rows, int64_t cols, int64_t nonzeros, int64_t width,
                         hipStream_t stream) {
  sddmm_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(q, k, start, column, scale, out, width);
  return hipGetLastError();
}
