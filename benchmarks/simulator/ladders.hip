// Steps of textbook ladders; ladders.py launches them. No HIP headers are needed.
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))

typedef double Double2 __attribute__((ext_vector_type(2)));

DEVICE inline int lane() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE inline int block() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE inline int width() { return __builtin_amdgcn_workgroup_size_x(); }
DEVICE inline void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// z = a x + y with doubles: one wave for everything, an element a thread, and two.
GLOBAL void daxpy_wave(const double* x, const double* y, double* z, int n) {
  for (int i = lane(); i < n; i += 64) z[i] = 1.5 * x[i] + y[i];
}
GLOBAL void daxpy(const double* x, const double* y, double* z, int n) {
  const int i = block() * width() + lane();
  if (i < n) z[i] = 1.5 * x[i] + y[i];
}
GLOBAL void daxpy_pairs(const Double2* x, const Double2* y, Double2* z, int n) {
  const int i = block() * width() + lane();
  if (i < n / 2) z[i] = 1.5 * x[i] + y[i];
}

// Sums of 256 floats a workgroup, or of `each` times as many.
const int THREADS = 256;
DEVICE inline void add_up(float* part, float* out) {
  for (int half = THREADS / 2; half > 0; half /= 2) {
    barrier();
    if (lane() < half) part[lane()] += part[lane() + half];
  }
  if (lane() == 0) out[block()] = part[0];
}
GLOBAL void sum_divergent(const float* x, float* out, int each) {
  static SHARED float part[THREADS];
  part[lane()] = x[block() * THREADS + lane()];
  for (int step = 1; step < THREADS; step *= 2) {
    barrier();
    if (lane() % (2 * step) == 0) part[lane()] += part[lane() + step];
  }
  if (lane() == 0) out[block()] = part[0];
}
GLOBAL void sum_strided_lds(const float* x, float* out, int each) {
  static SHARED float part[THREADS];
  part[lane()] = x[block() * THREADS + lane()];
  for (int step = 1; step < THREADS; step *= 2) {
    barrier();
    const int i = 2 * step * lane();
    if (i < THREADS) part[i] += part[i + step];
  }
  if (lane() == 0) out[block()] = part[0];
}
GLOBAL void sum_sequential(const float* x, float* out, int each) {
  static SHARED float part[THREADS];
  part[lane()] = x[block() * THREADS + lane()];
  add_up(part, out);
}
GLOBAL void sum_of_two(const float* x, float* out, int each) {
  static SHARED float part[THREADS];
  float sum = 0;
  for (int i = 0; i < each; i++) sum += x[(block() * each + i) * THREADS + lane()];
  part[lane()] = sum;
  add_up(part, out);
}
