// Sampled product: one block of 64 threads a row; the block adds up each edge's product.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kWave = 64;

__device__ float wave_sum(float value) {
  for (int step = 32; step > 0; step /= 2) value += __shfl_xor(value, step);
  return value;
}

__global__ void sddmm_kernel(const __half* q, const __half* k, const int32_t* start,
                             const int32_t* column, float scale, float* out, int64_t width) {
  const int64_t row = blockIdx.x;
  for (int32_t j = start[row]; j < start[row + 1]; ++j) {
    const __half* other = k + column[j] * width;
    float part = 0.0f;
    for (int64_t c = threadIdx.x; c < width; c += kWave) {
      part += __half2float(q[row * width + c]) * __half2float(other[c]);
    }
    const float total = wave_sum(part);
    if (threadIdx.x == 0) out[j] = total * scale;
  }
}

extern "C" int sddmm_csr(const __half* q, const __half* k, const int32_t* start, const int32_t*
                         column, float scale, float* out, int64_t rows, int64_t cols, int64_t nonzeros, int64_t width,
                         hipStream_t stream) {
  sddmm_kernel<<<dim3(rows), dim3(kWave), 0, stream>>>(q, k, start, column, scale, out, width);
  return hipGetLastError();
}
