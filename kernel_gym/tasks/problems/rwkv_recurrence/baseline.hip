// RWKV-6 time mixing: one block of 64 threads a head; a thread keeps a column of the state in
// registers, the rows of a step go through shared memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>
constexpr int kWidth = 64;

__global__ void rwkv_kernel(const __half* r, const __half* k, const __half* v, const float* w,
                            const float* u, __half* out, int64_t seq, int64_t heads) {
  __shared__ float r_row[kWidth], k_row[kWidth], w_row[kWidth], u_row[kWidth];
  const int lane = threadIdx.x;
  const int64_t head = blockIdx.x, batch = blockIdx.y;
  float state[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) state[i] = 0.0f;
  u_row[lane] = u[head * kWidth + lane];
  for (int64_t t = 0; t < seq; ++t) {
    const int64_t at = ((batch * seq + t) * heads + head) * kWidth + lane;
    __syncthreads();
    r_row[lane] = __half2float(r[at]);
    k_row[lane] = __half2float(k[at]);
    w_row[lane] = w[at];
    __syncthreads();
    const float value = __half2float(v[at]);
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float pair = k_row[i] * value;
      total += r_row[i] * (state[i] + u_row[i] * pair);
      state[i] = w_row[i] * state[i] + pair;
    }
    out[at] = __float2half(total);
  }
}

extern "C" int rwkv_recurrence(const __half* r, const __half* k, const __half* v, const float* w,
                               const float* u, __half* out, int64_t batch, int64_t seq,
                               int64_t heads, hipStream_t stream) {
  rwkv_kernel<<<dim3(heads, batch), dim3(kWidth), 0, stream>>>(r, k, v, w, u, out, seq, heads);
  return hipGetLastError();
}
