// Kernels for test_hip.py. No HIP headers: clang's builtins are enough.
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))

DEVICE inline int thread_x() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE inline int thread_y() { return __builtin_amdgcn_workitem_id_y(); }
DEVICE inline int block_x() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE inline int block_y() { return __builtin_amdgcn_workgroup_id_y(); }
DEVICE inline int block_size_x() { return __builtin_amdgcn_workgroup_size_x(); }
DEVICE inline int block_size_y() { return __builtin_amdgcn_workgroup_size_y(); }
DEVICE inline void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

extern SHARED float dynamic[];

GLOBAL void block_sum(const float* x, float* out, int n) {
  const int t = thread_x(), i = block_x() * block_size_x() + t;
  dynamic[t] = i < n ? x[i] : 0.f;
  barrier();
  for (int step = block_size_x() / 2; step > 0; step /= 2) {
    if (t < step) dynamic[t] += dynamic[t + step];
    barrier();
  }
  if (t == 0) out[block_x()] = dynamic[0];
}

GLOBAL void coordinates(int* out, int columns, int rows) {
  const int x = block_x() * block_size_x() + thread_x();
  const int y = block_y() * block_size_y() + thread_y();
  if (x < columns && y < rows) out[y * columns + x] = 100 * y + x;
}

__attribute__((constant)) float table[4] = {1.5f, 2.5f, 3.5f, 4.5f};

DEVICE __attribute__((noinline)) float helper(float x, int count) {
  for (int i = 0; i < count; i++) x = x * table[i & 3] + 1.f;
  return x;
}

DEVICE __attribute__((noinline)) float second(float x) { return helper(x, 3) + 1.f; }

GLOBAL void calls(const float* x, float* out, int n) {
  const int i = block_x() * block_size_x() + thread_x();
  if (i < n) out[i] = i & 1 ? helper(x[i], 5) : second(x[i]);
}

GLOBAL void apertures(float* x, float* out, int n, int which) {
  SHARED float shared[256];
  float local[4];
  const int t = thread_x();
  shared[t] = x[t];
  for (int i = 0; i < 4; i++) local[i] = x[(t + i) % n];
  barrier();
  float* p = which == 0 ? &shared[(t + 1) % 256] : which == 1 ? &local[t % 4] : x + t;
  *p += 1.f;
  out[t] = *p;
}

typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef float float4v __attribute__((ext_vector_type(4)));

GLOBAL void matrix16(const _Float16* a, const _Float16* b, float* out) {
  const int lane = thread_x(), group = lane / 16, column = lane % 16;
  half4 x, y;
  for (int e = 0; e < 4; e++) {
    x[e] = a[column * 16 + group * 4 + e];
    y[e] = b[(group * 4 + e) * 16 + column];
  }
  float4v sum = {0, 0, 0, 0};
  sum = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, sum, 0, 0, 0);
  for (int r = 0; r < 4; r++) out[(group * 4 + r) * 16 + column] = sum[r];
}
