// Focal loss: one element a thread.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void focal_kernel(const float* logits, const float* target, float alpha, float gamma,
                             float* loss, int64_t count) {
  const int64_t at = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (at >= count) return;
  const bool hit = target[at] > 0.5f;
  const float right = hit ? logits[at] : -logits[at];
  const float small = expf(-fabsf(right));
  const float entropy = fmaxf(-right, 0.0f) + log1pf(small);
  const float wrong = (right > 0.0f ? small : 1.0f) / (1.0f + small);
  const float weight = alpha < 0.0f ? 1.0f : (hit ? alpha : 1.0f - alpha);
  loss[at] = weight * powf(wrong, gamma) * entropy;
}

extern "C" int sigmoid_focal_loss(const float* logits, const float* target, float alpha, float
                                  gamma, float* loss, int64_t rows, int64_t classes, hipStream_t stream) {
  const int64_t count = rows * classes;
  focal_kernel<<<dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0, stream>>>(
      logits, target, alpha, gamma, loss, count);
  return hipGetLastError();
}
