// 2:4 sparse product: one output a thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void sparse_kernel(const __half* x, const __half* value, const uint8_t* place,
                              __half* out, int64_t n, int64_t k) {
  const int64_t row = blockIdx.x;
  const int64_t col = (int64_t)blockIdx.y * kThreads + threadIdx.x;
  if (col >= n) return;
  const __half* mine = x + row * k;
  float total = 0.0f;
  for (int64_t g = 0; g < k / 4; ++g) {
    const int nibble = place[col * (k / 8) + g / 2] >> (4 * (g % 2)) & 15;
    const __half* kept = value + col * (k / 2) + 2 * g;
    total += __half2float(kept[0]) * __half2float(mine[4 * g + (nibble & 3)]);
    total += __half2float(kept[1]) * __half2float(mine[4 * g + (nibble >> 2)]);
  }
  out[row * n + col] = __float2half(total);
}

extern "C" int matmul_2to4(const __half* x, const __half* value, const uint8_t* place, __half* out,
                           int64_t m, int64_t n, int64_t k, hipStream_t stream) {
  const dim3 grid(m, (n + kThreads - 1) / kThreads);
  sparse_kernel<<<grid, dim3(kThreads), 0, stream>>>(x, value, place, out, n, k);
  return hipGetLastError();
}
