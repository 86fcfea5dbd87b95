// Microbenchmarks of the timing model; microbenchmarks.py launches them. No HIP headers are needed.
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))

typedef float Float4 __attribute__((ext_vector_type(4)));

DEVICE inline int lane() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE inline int block() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE inline int width() { return __builtin_amdgcn_workgroup_size_x(); }

// Each address holds the next one: one load in flight.
GLOBAL void chase(void** start, void** out, int steps) {
  if (lane() != 0) return;
  void** at = start;
  for (int i = 0; i < steps; i++) at = (void**)*at;
  *out = at;
}

// Reads a stream with `depth` independent loads of 16 bytes in flight.
template <int depth>
DEVICE inline void flight(const Float4* x, Float4* out, int each) {
  const int threads = 304 * 256, first = block() * 256 + lane();
  Float4 sum = 0;
  for (int i = 0; i < each; i += depth) {
    Float4 part[depth];
#pragma unroll
    for (int d = 0; d < depth; d++) part[d] = __builtin_nontemporal_load(&x[first + (i + d) * threads]);
    asm volatile("" ::: "memory");
#pragma unroll
    for (int d = 0; d < depth; d++) sum += part[d];
  }
  if (sum.x == 123.f) out[first] = sum;
}
GLOBAL void flight1(const Float4* x, Float4* out, int each) { flight<1>(x, out, each); }
GLOBAL void flight2(const Float4* x, Float4* out, int each) { flight<2>(x, out, each); }
GLOBAL void flight4(const Float4* x, Float4* out, int each) { flight<4>(x, out, each); }
GLOBAL void flight8(const Float4* x, Float4* out, int each) { flight<8>(x, out, each); }

// Streams of doubles with one element a thread; dynamic LDS limits the occupancy.
GLOBAL void stream_init(double* a, const double* b, const double* c, const double* d) {
  a[block() * width() + lane()] = 0.4;
}
GLOBAL void stream_read(double* a, const double* b, const double* c, const double* d) {
  const int i = block() * width() + lane();
  const double value = b[i];
  if (value == 123.0) a[i] = value;
}
GLOBAL void stream_scale(double* a, const double* b, const double* c, const double* d) {
  const int i = block() * width() + lane();
  a[i] = 1.2 * b[i];
}
GLOBAL void stream_triad(double* a, const double* b, const double* c, const double* d) {
  const int i = block() * width() + lane();
  a[i] = b[i] + d[i] * c[i];
}

// Workgroups read `words` doubles each, again and again, `stride` apart.
GLOBAL void cached(const double* x, double* out, int words, int stride, int passes) {
  const double* own = x + block() * stride;
  double sum = 0;
  for (int pass = 0; pass < passes; pass++) {
    asm volatile("" : "+v"(own));  // loads of a pass are not those of the one before
    for (int i = lane(); i < words; i += 8 * width()) {
      double part[8];
#pragma unroll
      for (int j = 0; j < 8; j++) part[j] = own[i + j * width()];
#pragma unroll
      for (int j = 0; j < 8; j++) sum += part[j];
    }
  }
  if (sum == 123.0) out[lane()] = sum;
}

// One instruction again and again: 256 times in a round, so that the loop does not count.
#define FOUR(text) text text text text
#define REPEATED(name, text)                                                   \
  GLOBAL void name(float* out, int times) {                                    \
    float a = lane();                                                          \
    for (int i = 0; i < times; i++) asm volatile(FOUR(FOUR(FOUR(FOUR(text)))) : "+v"(a) : : "v10", "v11", "v12", "v13"); \
    if (a == 123.f) out[lane()] = a;                                           \
  }
REPEATED(run_add_f32, "v_add_f32_e32 v10, v10, v11\n")
REPEATED(run_mul_f32, "v_mul_f32_e32 v10, v10, v11\n")
REPEATED(run_fmac_f32, "v_fmac_f32_e32 v10, v11, v11\n")
REPEATED(run_fma_f32, "v_fma_f32 v10, v11, v11, v10\n")
REPEATED(run_pk_add_f32, "v_pk_add_f32 v[10:11], v[10:11], v[12:13]\n")
REPEATED(run_pk_fma_f32, "v_pk_fma_f32 v[10:11], v[12:13], v[12:13], v[10:11]\n")
REPEATED(run_pk_mul_f16, "v_pk_mul_f16 v10, v10, v11\n")
REPEATED(run_add_f16, "v_add_f16_e32 v10, v10, v11\n")
REPEATED(run_add_f64, "v_add_f64 v[10:11], v[10:11], v[12:13]\n")
REPEATED(run_mul_f64, "v_mul_f64 v[10:11], v[10:11], v[12:13]\n")
REPEATED(run_fma_f64, "v_fma_f64 v[10:11], v[12:13], v[12:13], v[10:11]\n")

// Additions to bins of which the first one gets one key of eight.
GLOBAL void histogram(unsigned* bins, int rounds) {
  unsigned state = (block() * width() + lane()) * 2654435761u + 12345u;
  for (int i = 0; i < rounds; i++) {
    state = state * 1664525u + 1013904223u;
    const unsigned key = (state >> 28) < 2 ? 0 : (state >> 12) & 4095;
    __hip_atomic_fetch_add(&bins[key], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }
}
