// Routing: one thread a token. It looks for the best logit after the last one chosen, top_k times.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;
constexpr int kMaxChoices = 16;

__global__ void topk_kernel(const float* logits, int64_t top_k, float* weight, int32_t* expert,
                            int64_t tokens, int64_t experts) {
  const int64_t token = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (token >= tokens) return;
  const float* row = logits + token * experts;
  float first = 0.0f, last = INFINITY, total = 0.0f;
  int64_t last_at = -1;
  for (int64_t i = 0; i < top_k; ++i) {
    float best = -INFINITY;
    int64_t best_at = -1;
    for (int64_t e = 0; e < experts; ++e) {
      const bool later = row[e] < last || (row[e] == last && e > last_at);
      if (later && (best_at < 0 || row[e] > best)) {
        best = row[e];
        best_at = e;
      }
    }
    if (i == 0) first = best;
    const float share = expf(best - first);
    total += share;
    weight[token * top_k + i] = share;
    expert[token * top_k + i] = (int32_t)best_at;
    last = best;
    last_at = best_at;
  }
  for (int64_t i = 0; i < top_k; ++i) weight[token * top_k + i] /= total;
}

extern "C" int moe_topk_softmax(const float* logits, int64_t top_k, float* weight, int32_t* expert,
                                int64_t tokens, int64_t experts, hipStream_t stream) {
  const dim3 grid((tokens + kThreads - 1) / kThreads);
  topk_kernel<<<grid, dim3(kThreads), 0, stream>>>(logits, top_k, weight, expert, tokens, experts);
  return hipGetLastError();
}
