// Penalties: one block a tile of the vocabulary counts the tokens of both histories in shared memory,
// then applies the penalties to its logits.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;
constexpr int kTokens = 2048;

__device__ void count_tokens(const int32_t* history, int64_t length, int64_t first, int* counts) {
  for (int64_t i = threadIdx.x; i < length; i += kThreads) {
    const int64_t place = history[i] - first;
    if (history[i] >= 0 && place >= 0 && place < kTokens) atomicAdd(&counts[place], 1);
  }
}

__global__ void penalties_kernel(const float* logits, const int32_t* prompt, const int32_t* output,
                                 const float* repetition, const float* frequency,
                                 const float* presence, float* out, int64_t vocab,
                                 int64_t prompt_length, int64_t output_length) {
  __shared__ int prompted[kTokens];
  __shared__ int written[kTokens];
  const int64_t row = blockIdx.y;
  const int64_t first = (int64_t)blockIdx.x * kTokens;
  for (int i = threadIdx.x; i < kTokens; i += kThreads) prompted[i] = written[i] = 0;
  __syncthreads();
  count_tokens(prompt + row * prompt_length, prompt_length, first, prompted);
  count_tokens(output + row * output_length, output_length, first, written);
  __syncthreads();
  for (int i = threadIdx.x; i < kTokens && first + i < vocab; i += kThreads) {
    const int count = written[i];
    float x = logits[row * vocab + first + i];
    if (prompted[i] + count > 0) x = x > 0.0f ? x / repetition[row] : x * repetition[row];
    x -= frequency[row] * (float)count;
    if (count > 0) x -= presence[row];
    out[row * vocab + first + i] = x;
  }
}

extern "C" int logit_penalties(const float* logits, const int32_t* prompt, const int32_t* output,
                               const float* repetition, const float* frequency,
                               const float* presence, float* out, int64_t rows, int64_t vocab,
                               int64_t prompt_length, int64_t output_length, hipStream_t stream) {
  const dim3 grid((vocab + kTokens - 1) / kTokens, rows);
  penalties_kernel<<<grid, dim3(kThreads), 0, stream>>>(logits, prompt, output, repetition,
                                                        frequency, presence, out, vocab,
                                                        prompt_length, output_length);
  return hipGetLastError();
}
