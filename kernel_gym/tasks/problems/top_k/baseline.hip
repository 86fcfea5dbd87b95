// Top-k: one block of 64 threads a row searches it k times for the next in order of value and index.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 64;

__global__ void top_k_kernel(const float* x, int64_t k, float* values, int64_t* indices,
                             int64_t cols) {
  __shared__ float best_value[kThreads];
  __shared__ int64_t best_index[kThreads];
  const float* row = x + (int64_t)blockIdx.x * cols;
  const int lane = threadIdx.x;
  float last = INFINITY;
  int64_t last_index = -1;

  for (int64_t i = 0; i < k; ++i) {
    float value = -INFINITY;
    int64_t index = cols;
    for (int64_t c = lane; c < cols; c += kThreads) {
      const bool left = row[c] < last || (row[c] == last && c > last_index);
      if (left && row[c] > value) {
        value = row[c];
        index = c;
      }
    }
    best_value[lane] = value;
    best_index[lane] = index;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
      if (lane < half) {
        const float other = best_value[lane + half];
        const int64_t other_index = best_index[lane + half];
        if (other > best_value[lane] ||
            (other == best_value[lane] && other_index < best_index[lane])) {
          best_value[lane] = other;
          best_index[lane] = other_index;
        }
      }
      __syncthreads();
    }
    last = best_value[0];
    last_index = best_index[0];
    __syncthreads();
    if (lane == 0) {
      values[blockIdx.x * k + i] = last;
      indices[blockIdx.x * k + i] = last_index;
    }
  }
}

extern "C" int top_k(const float* x, int64_t k, float* values, int64_t* indices, int64_t rows,
                     int64_t cols, hipStream_t stream) {
  top_k_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(x, k, values, indices, cols);
  return hipGetLastError();
}
