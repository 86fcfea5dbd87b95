// Three kernels that lack a barrier (BARRIERS=false), and the same ones with it.
#include <hip/hip_runtime.h>

constexpr int THREADS = 256, WAVES = THREADS / 64, EXPERTS = 8, PAGES = 4;

template <bool BARRIERS>
__device__ void barrier() {
  if (BARRIERS) __syncthreads();
}

// Softmax of a row: the second reduction writes where waves may still read the first one.
template <bool BARRIERS>
__global__ void softmax(float* row) {
  __shared__ float partial[WAVES];
  const int wave = threadIdx.x / 64;
  float value = row[threadIdx.x], top = value, sum = 0;
  for (int step = 32; step; step /= 2) top = fmaxf(top, __shfl_xor(top, step));
  partial[wave] = top;  // maximum written
  __syncthreads();
  for (int i = 0; i < WAVES; i++) top = fmaxf(top, partial[i]);  // maximum read
  barrier<BARRIERS>();
  value = expf(value - top);
  float own = value;
  for (int step = 32; step; step /= 2) own += __shfl_xor(own, step);
  partial[wave] = own;  // sum written
  __syncthreads();
  for (int i = 0; i < WAVES; i++) sum += partial[i];
  row[threadIdx.x] = value / sum;
}

// Counts the tokens of each expert: offsets are computed before all waves have counted.
template <bool BARRIERS>
__global__ void count_tokens(const int* experts, int* offsets) {
  __shared__ int counts[EXPERTS];
  if (threadIdx.x < EXPERTS) counts[threadIdx.x] = 0;
  __syncthreads();
  const int expert = (experts[threadIdx.x] + threadIdx.x) % EXPERTS;
  atomicAdd(&counts[expert], 1);  // counted
  barrier<BARRIERS>();
  int offset = 0;
  for (int i = 0; i < expert; i++) offset += counts[i];  // offset read
  offsets[threadIdx.x] = offset;
}

// Decodes with pages of keys: the next page is loaded while waves still read this one.
template <bool BARRIERS>
__global__ void decode(const float* keys, float* scores) {
  __shared__ float page[THREADS];
  float score = 0;
  for (int number = 0; number < PAGES; number++) {
    page[threadIdx.x] = keys[number * THREADS + threadIdx.x];  // page written
    __syncthreads();
    score += page[THREADS - 1 - threadIdx.x];  // page read
    barrier<BARRIERS>();
  }
  scores[threadIdx.x] = score;
}

template <bool BARRIERS>
void launch(float* floats, int* integers) {
  softmax<BARRIERS><<<1, THREADS>>>(floats);
  count_tokens<BARRIERS><<<1, THREADS>>>(integers, integers + THREADS);
  decode<BARRIERS><<<1, THREADS>>>(floats, floats + PAGES * THREADS);
}

int main() {
  float* floats;
  int* integers;
  if (hipMalloc(&floats, 8 * PAGES * THREADS) || hipMalloc(&integers, 8 * THREADS)) return 1;
  if (hipMemset(floats, 0, 8 * PAGES * THREADS) || hipMemset(integers, 0, 8 * THREADS)) return 1;
  launch<true>(floats, integers);
  launch<false>(floats, integers);
  return hipDeviceSynchronize();
}
