// MXFP4 quantisation: one block of 32 columns a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__device__ int encode(float x, float factor) {
  const float size = fabsf(x) * factor;
  const int index = (size > 0.25f) + (size >= 0.75f) + (size > 1.25f) + (size >= 1.75f) +
                    (size > 2.5f) + (size >= 3.5f) + (size > 5.0f);
  return index + (x < 0.0f ? 8 : 0);
}

__global__ void mxfp4_kernel(const __half* x, uint8_t* code, uint8_t* scale, int64_t blocks) {
  const int64_t block = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (block >= blocks) return;
  const __half* mine = x + block * 32;
  float top = 0.0f;
  for (int i = 0; i < 32; ++i) top = fmaxf(top, fabsf(__half2float(mine[i])));
  int exponent = 0;
  if (top > 0.0f) exponent = max(0, (__float_as_int(top) >> 23) - 2);
  const float factor = __int_as_float((254 - exponent) << 23);
  for (int i = 0; i < 16; ++i) {
    const int low = encode(__half2float(mine[2 * i]), factor);
    const int high = encode(__half2float(mine[2 * i + 1]), factor);
    code[block * 16 + i] = (uint8_t)(low + 16 * high);
  }
  scale[block] = (uint8_t)exponent;
}

extern "C" int quantize_mxfp4(const __half* x, uint8_t* code, uint8_t* scale, int64_t rows,
                              int64_t cols, hipStream_t stream) {
  const int64_t blocks = rows * cols / 32;
  mxfp4_kernel<<<dim3((blocks + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      x, code, scale, blocks);
  return hipGetLastError();
}
