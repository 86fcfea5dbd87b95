// Ternary product: one output a thread; a row of x is shared by the block.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void bitnet_kernel(const int8_t* x, const float* x_scale, const uint8_t* code,
                              float w_scale, uint16_t* out, int64_t n, int64_t k) {
  const int64_t row = blockIdx.y;
  const int64_t col = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (col >= n) return;
  const int8_t* mine = x + row * k;
  const uint8_t* packed = code + col * (k / 4);
  int total = 0;
  for (int64_t b = 0; b < k / 4; ++b) {
    const int bits = packed[b];
    for (int s = 0; s < 4; ++s) total += mine[4 * b + s] * ((bits >> (2 * s) & 3) - 1);
  }
  const uint32_t value = __float_as_uint((float)total * (x_scale[row] * w_scale));
  out[row * n + col] = (uint16_t)((value + 0x7FFF + (value >> 16 & 1)) >> 16);
}

extern "C" int bitnet_matmul(const int8_t* x, const float* x_scale, const uint8_t* code,
                             float w_scale, uint16_t* out, int64_t m, int64_t n, int64_t k,
                             hipStream_t stream) {
  const dim3 grid((n + kThreads - 1) / kThreads, m);
  bitnet_kernel<<<grid, dim3(kThreads), 0, stream>>>(x, x_scale, code, w_scale, out, n, k);
  return hipGetLastError();
}
