// Penalties: one thread a logit compares its token with the whole history.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__device__ int occurrences(const int32_t* history, int64_t length, int64_t token) {
  int count = 0;
  for (int64_t i = 0; i < length; ++i) count += history[i] == token;
  return count;
}

__global__ void penalties_kernel(const float* logits, const int32_t* prompt, const int32_t* output,
                                 const float* repetition, const float* frequency,
                                 const float* presence, float* out, int64_t vocab,
                                 int64_t prompt_length, int64_t output_length) {
  const int64_t row = blockIdx.y;
  const int64_t token = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (token >= vocab) return;
  const int before = occurrences(prompt + row * prompt_length, prompt_length, token);
  const int count = occurrences(output + row * output_length, output_length, token);
  float x = logits[row * vocab + token];
  if (before + count > 0) x = x > 0.0f ? x / repetition[row] : x * repetition[row];
  x -= frequency[row] * (float)count;
  if (count > 0) x -= presence[row];
  out[row * vocab + token] = x;
}

extern "C" int logit_penalties(const float* logits, const int32_t* prompt, const int32_t* output,
                               const float* repetition, const float* frequency,
                               const float* presence, float* out, int64_t rows, int64_t vocab,
                               int64_t prompt_length, int64_t output_length, hipStream_t stream) {
  const dim3 grid((vocab + kThreads - 1) / kThreads, rows);
  penalties_kernel<<<grid, dim3(kThreads), 0, stream>>>(logits, prompt, output, repetition,
                                                        frequency, presence, out, vocab,
                                                        prompt_length, output_length);
  return hipGetLastError();
}
