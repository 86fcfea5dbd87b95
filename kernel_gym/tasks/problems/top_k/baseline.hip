// Top-k: one block of 64 threads a row. Each thread keeps the largest of its columns that is left;
// the largest of all is taken k times, and only the thread that had it searches its columns again.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

struct Entry {
  float value;
  int64_t index;
};

__device__ bool before(const Entry& a, const Entry& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}

// The first of a thread's columns, in order of value and index, that comes after `last`.
__device__ Entry largest_left(const float* row, int64_t cols, const Entry& last) {
  Entry best = {-INFINITY, cols};
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const Entry one = {row[c], c};
    if (before(last, one) && before(one, best)) best = one;
  }
  return best;
}

__global__ void top_k_kernel(const float* x, int64_t k, float* values, int64_t* indices,
                             int64_t cols) {
  __shared__ Entry best[kThreads];
  const float* row = x + (int64_t)blockIdx.x * cols;
  const int lane = threadIdx.x;
  Entry mine = largest_left(row, cols, {INFINITY, -1});

  for (int64_t i = 0; i < k; ++i) {
    best[lane] = mine;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
      if (lane < half && before(best[lane + half], best[lane])) best[lane] = best[lane + half];
      __syncthreads();
    }
    const Entry taken = best[0];
    __syncthreads();
    if (taken.index == mine.index) mine = largest_left(row, cols, taken);
    if (lane == 0) {
      values[blockIdx.x * k + i] = taken.value;
      indices[blockIdx.x * k + i] = taken.index;
    }
  }
}

extern "C" int top_k(const float* x, int64_t k, float* values, int64_t* indices, int64_t rows,
                     int64_t cols, hipStream_t stream) {
  top_k_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(x, k, values, indices, cols);
  return hipGetLastError();
}
