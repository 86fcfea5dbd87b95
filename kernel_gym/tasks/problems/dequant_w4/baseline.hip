// AWQ unpacking: one block a row, one thread a word at a time, its eight weights one by one.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kThreads = 128;
constexpr int kGroup = 128;

__global__ void dequant_w4_kernel(const int32_t* qweight, const __half* scales,
                                  const int32_t* qzeros, __half* out, int64_t cols) {
  const int64_t row = blockIdx.x;
  const int64_t group = row / kGroup;
  const int64_t words = cols / 8;
  for (int64_t w = threadIdx.x; w < words; w += kThreads) {
    const int32_t codes = qweight[row * words + w];
    const int32_t zeros = qzeros[group * words + w];
    for (int j = 0; j < 8; ++j) {
      const int shift = 4 * (j / 2 + 4 * (j % 2));
      const int centred = ((codes >> shift) & 15) - ((zeros >> shift) & 15);
      const float scale = __half2float(scales[group * cols + 8 * w + j]);
      out[row * cols + 8 * w + j] = __float2half((float)centred * scale);
    }
  }
}

extern "C" int dequant_w4(const int32_t* qweight, const __half* scales, const int32_t* qzeros,
                          __half* out, int64_t rows, int64_t cols, hipStream_t stream) {
  dequant_w4_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(qweight, scales, qzeros, out, cols);
  return hipGetLastError();
}
