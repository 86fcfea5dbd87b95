// RWKV-7 time mixing: one block of 64 threads a head; a thread keeps a row of the state in
// registers, the rows of a step go through shared memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kWidth = 64;

__global__ void rwkv7_kernel(const __half* r, const float* w, const __half* k, const __half* v,
                             const __half* a, const __half* b, __half* out, int64_t seq,
                             int64_t heads) {
  __shared__ float r_row[kWidth], w_row[kWidth], k_row[kWidth], a_row[kWidth], b_row[kWidth];
  const int lane = threadIdx.x;
  const int64_t head = blockIdx.x, batch = blockIdx.y;
  float state[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) state[i] = 0.0f;
  for (int64_t t = 0; t < seq; ++t) {
    const int64_t at = ((batch * seq + t) * heads + head) * kWidth + lane;
    __syncthreads();
    r_row[lane] = __half2float(r[at]);
    w_row[lane] = w[at];
    k_row[lane] = __half2float(k[at]);
    a_row[lane] = __half2float(a[at]);
    b_row[lane] = __half2float(b[at]);
    __syncthreads();
    const float value = __half2float(v[at]);
    float held = 0.0f;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) held += state[i] * a_row[i];
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      state[i] = state[i] * w_row[i] + held * b_row[i] + value * k_row[i];
      total += state[i] * r_row[i];
    }
    out[at] = __float2half(total);
  }
}

extern "C" int rwkv7_recurrence(const __half* r, const float* w, const __half* k, const __half* v,
                                const __half* a, const __half* b, __half* out, int64_t batch,
                                int64_t seq, int64_t heads, hipStream_t stream) {
  rwkv7_kernel<<<dim3(heads, batch), dim3(kWidth), 0, stream>>>(r, w, k, v, a, b, out, seq, heads);
  return hipGetLastError();
}
