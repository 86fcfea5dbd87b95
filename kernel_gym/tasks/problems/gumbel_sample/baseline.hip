// Gumbel sampling: one block a row; each element computes its own Philox block.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__device__ uint32_t philox_word(uint64_t seed, uint64_t counter, uint64_t offset, int place) {
  uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)offset,
                   (uint32_t)(offset >> 32)};
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
  return place < 2 ? (place == 0 ? c[0] : c[1]) : (place == 2 ? c[2] : c[3]);
}

__global__ void gumbel_kernel(const float* logits, float temperature, int64_t seed, int64_t offset,
                              int32_t* token, int64_t vocab) {
  __shared__ float top[kThreads];
  __shared__ int place[kThreads];
  const int lane = threadIdx.x;
  const int64_t row = blockIdx.x;
  float best = -INFINITY;
  int best_at = 0;
  for (int64_t j = lane; j < vocab; j += kThreads) {
    const int64_t e = row * vocab + j;
    const uint32_t word = philox_word(seed, e / 4, offset, (int)(e % 4));
    const float u = ((float)(word >> 9) + 0.5f) * (1.0f / 8388608.0f);
    const float score = logits[e] / temperature - logf(-logf(u));
    if (score > best) {
      best = score;
      best_at = (int)j;
    }
  }
  top[lane] = best;
  place[lane] = best_at;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half && top[lane + half] > top[lane]) {
      top[lane] = top[lane + half];
      place[lane] = place[lane + half];
    }
    __syncthreads();
  }
  if (lane == 0) token[row] = place[0];
}

extern "C" int gumbel_sample(const float* logits, float temperature, int64_t seed, int64_t offset,
                             int32_t* token, int64_t rows, int64_t vocab, hipStream_t stream) {
  gumbel_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(logits, temperature, seed, offset, token,
                                                           vocab);
  return hipGetLastError();
}
