// Normal samples: one element a thread, each with a Philox block of its own.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__device__ void philox(uint64_t seed, uint64_t counter, uint64_t offset, uint32_t c[4]) {
  c[0] = (uint32_t)counter;
  c[1] = (uint32_t)(counter >> 32);
  c[2] = (uint32_t)offset;
  c[3] = (uint32_t)(offset >> 32);
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
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
}

__global__ void gaussian_sample_kernel(const __half* mean, const __half* logvar, int64_t seed,
                                       int64_t offset, __half* out, int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= count) return;
  uint32_t words[4];
  philox(seed, at / 4, offset, words);
  const bool first = at % 4 < 2;
  const float u = (float)(((first ? words[0] : words[2]) >> 8) + 1) * (1.0f / 16777216.0f);
  const float v = (float)((first ? words[1] : words[3]) >> 8) * (1.0f / 16777216.0f);
  const float angle = v * 6.283185307179586f;
  const float z = sqrtf(-2.0f * logf(u)) * (at % 2 == 0 ? cosf(angle) : sinf(angle));
  out[at] = __float2half(__half2float(mean[at]) + expf(0.5f * __half2float(logvar[at])) * z);
}

extern "C" int gaussian_sample(const __half* mean, const __half* logvar, int64_t seed,
                               int64_t offset, __half* out, int64_t rows, int64_t cols,
                               hipStream_t stream) {
  const int64_t count = rows * cols;
  gaussian_sample_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      mean, logvar, seed, offset, out, count);
  return hipGetLastError();
}
