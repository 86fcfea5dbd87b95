// Min-p sampling: one block a row; each thread owns a part of the vocabulary.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void min_p_kernel(const float* logits, const float* uniform, float temperature,
                             float min_p, int32_t* token, int64_t vocab) {
  __shared__ float scratch[kThreads];
  __shared__ float ends[kThreads];
  __shared__ int lasts[kThreads];
  const int lane = threadIdx.x;
  const float* row = logits + (int64_t)blockIdx.x * vocab;
  float top = -INFINITY;
  for (int64_t j = lane; j < vocab; j += kThreads) top = fmaxf(top, row[j]);
  scratch[lane] = top;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half) scratch[lane] = fmaxf(scratch[lane], scratch[lane + half]);
    __syncthreads();
  }
  top = scratch[0];
  const int64_t share = (vocab + kThreads - 1) / kThreads;
  const int64_t first = lane * share, end = first + share < vocab ? first + share : vocab;
  float sum = 0.0f;
  int last = -1;
  for (int64_t j = first; j < end; ++j) {
    const float weight = expf((row[j] - top) / temperature);
    if (weight < min_p) continue;
    sum += weight;
    last = (int)j;
  }
  ends[lane] = sum;
  lasts[lane] = last;
  __syncthreads();
  if (lane != 0) return;
  for (int i = 1; i < kThreads; ++i) ends[i] += ends[i - 1];
  const float target = uniform[blockIdx.x] * ends[kThreads - 1];
  int owner = 0;
  while (owner < kThreads - 1 && ends[owner] <= target) ++owner;
  int answer = -1;
  float before = owner > 0 ? ends[owner - 1] : 0.0f;
  const int64_t stop = (owner + 1) * share < vocab ? (owner + 1) * share : vocab;
  for (int64_t j = owner * share; j < stop && answer < 0; ++j) {
    const float weight = expf((row[j] - top) / temperature);
    if (weight < min_p) continue;
    before += weight;
    if (before > target) answer = (int)j;
  }
  for (int i = kThreads - 1; i >= 0 && answer < 0; --i) answer = i <= owner ? lasts[i] : -1;
  token[blockIdx.x] = answer;
}

extern "C" int min_p_sampling(const float* logits, const float* uniform, float temperature,
                              float min_p, int32_t* token, int64_t rows, int64_t vocab,
                              hipStream_t stream) {
  min_p_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(logits, uniform, temperature, min_p,
                                                          token, vocab);
  return hipGetLastError();
}
