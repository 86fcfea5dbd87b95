// Forward substitution: one thread a right side of one system; it reads its own earlier results
// back from the output.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void triangular_solve_kernel(const float* a, const float* b, float* x, int64_t n,
                                        int64_t rights) {
  const int64_t col = (int64_t)blockIdx.y * kThreads + threadIdx.x;
  if (col >= rights) return;
  a += (int64_t)blockIdx.x * n * n;
  b += (int64_t)blockIdx.x * n * rights;
  x += (int64_t)blockIdx.x * n * rights;
  for (int64_t i = 0; i < n; ++i) {
    float rest = b[i * rights + col];
    for (int64_t j = 0; j < i; ++j) rest -= a[i * n + j] * x[j * rights + col];
    x[i * rights + col] = rest / a[i * n + i];
  }
}

extern "C" int triangular_solve(const float* a, const float* b, float* x, int64_t batch, int64_t n,
                                int64_t rights, hipStream_t stream) {
  const dim3 grid(batch, (rights + kThreads - 1) / kThreads);
  triangular_solve_kernel<<<grid, dim3(kThreads), 0, stream>>>(a, b, x, n, rights);
  return hipGetLastError();
}
