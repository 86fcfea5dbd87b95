// W4A16 product: one thread an output. Neighbouring threads read neighbouring words of the weight;
// each unpacks the eight nibbles of a word, one after another.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kThreads = 128;
constexpr int kGroup = 128;

__global__ void w4a16_matmul_kernel(const __half* x, const int32_t* qweight, const __half* scales,
                                    const int32_t* qzeros, __half* out, int64_t n, int64_t k) {
  const int64_t row = blockIdx.y;
  const int64_t col = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (col >= n) return;
  float total = 0.0f;
  for (int64_t group = 0; group < k / kGroup; ++group) {
    const int zero = ((qzeros[group * (n / 8) + col / 8] >> (4 * (col % 8))) & 15) + 1;
    float part = 0.0f;
    for (int64_t word = group * kGroup / 8; word < (group + 1) * kGroup / 8; ++word) {
      const int32_t codes = qweight[word * n + col];
      for (int i = 0; i < 8; ++i) {
        const int code = (codes >> (4 * i)) & 15;
        part += __half2float(x[row * k + word * 8 + i]) * (float)(code - zero);
      }
    }
    total += part * __half2float(scales[group * n + col]);
  }
  out[row * n + col] = __float2half(total);
}

extern "C" int w4a16_matmul(const __half* x, const int32_t* qweight, const __half* scales,
                            const int32_t* qzeros, __half* out, int64_t m, int64_t n, int64_t k,
                            hipStream_t stream) {
  const dim3 grid((n + kThreads - 1) / kThreads, m);
  w4a16_matmul_kernel<<<grid, dim3(kThreads), 0, stream>>>(x, qweight, scales, qzeros, out, n, k);
  return hipGetLastError();
}
