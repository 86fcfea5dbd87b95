// Verification of drafts: one block a row; every thread walks the steps, all search the vocabulary.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void verify_kernel(const int32_t* drafted, const float* draft, const float* target,
                              const float* uniform, const float* noise, int32_t* token,
                              int32_t* count, int64_t steps, int64_t vocab) {
  __shared__ float top[kThreads];
  __shared__ int place[kThreads];
  const int lane = threadIdx.x;
  const int64_t row = blockIdx.x;
  int64_t done = 0;
  for (; done < steps; ++done) {
    const int64_t j = drafted[row * steps + done];
    const float chance = uniform[row * steps + done] * draft[(row * steps + done) * vocab + j];
    if (!(chance <= target[(row * (steps + 1) + done) * vocab + j])) break;
  }
  const float* q = target + (row * (steps + 1) + done) * vocab;
  const float* p = draft + (row * steps + (done < steps ? done : 0)) * vocab;
  float best = -1.0f;
  int best_at = 0;
  for (int64_t j = lane; j < vocab; j += kThreads) {
    const float rest = done < steps ? fmaxf(q[j] - p[j], 0.0f) : q[j];
    const float score = rest / noise[row * vocab + j];
    if (score > best) {
      best = score;
      best_at = (int)j;
    }
  }
  top[lane] = best;
  place[lane] = best_at;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half) {
      const float other = top[lane + half];
      const int other_at = place[lane + half];
      if (other > top[lane] || (other == top[lane] && other_at < place[lane])) {
        top[lane] = other;
        place[lane] = other_at;
      }
    }
    __syncthreads();
  }
  if (lane != 0) return;
  token[row] = place[0];
  count[row] = (int)done;
}

extern "C" int speculative_verify(const int32_t* drafted, const float* draft, const float* target,
                                  const float* uniform, const float* noise, int32_t* token,
                                  int32_t* count, int64_t rows, int64_t steps, int64_t vocab,
                                  hipStream_t stream) {
  verify_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(drafted, draft, target, uniform, noise,
                                                           token, count, steps, vocab);
  return hipGetLastError();
}
