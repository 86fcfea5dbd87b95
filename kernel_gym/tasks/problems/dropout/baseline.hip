// Dropout: one element a thread, each with a Philox block of its own.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__device__ uint32_t philox_word(uint64_t seed, uint64_t counter, uint64_t offset, int word) {
  uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)offset,
                   (uint32_t)(offset >> 32)};
  uint32_t k0 = (uint32_t)seed;
  uint32_t k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t left = (uint64_t)c[0] * 0xD2511F53u;
    const uint64_t right = (uint64_t)c[2] * 0xCD9E8D57u;
    c[0] = (uint32_t)(right >> 32) ^ c[1] ^ k0;
    c[1] = (uint32_t)right;
    c[2] = (uint32_t)(left >> 32) ^ c[3] ^ k1;
    c[3] = (uint32_t)left;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return word < 2 ? (word == 0 ? c[0] : c[1]) : (word == 2 ? c[2] : c[3]);
}

__global__ void dropout_kernel(const __half* x, float p, int64_t seed, int64_t offset, __half* out,
                               int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= count) return;
  const uint32_t word = philox_word(seed, at / 4, offset, at % 4);
  const bool keep = (float)(word >> 8) * (1.0f / 16777216.0f) >= p;
  out[at] = __float2half(keep ? __half2float(x[at]) / (1.0f - p) : 0.0f);
}

extern "C" int dropout(const __half* x, float p, int64_t seed, int64_t offset, __half* out,
                       int64_t rows, int64_t cols, hipStream_t stream) {
  const int64_t count = rows * cols;
  dropout_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      x, p, seed, offset, out, count);
  return hipGetLastError();
}
