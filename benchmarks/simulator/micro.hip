// Microbenchmarks of the timing model; microbenchmarks.py launches them. No HIP headers are needed.
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))

typedef float Float4 __attribute__((ext_vector_type(4)));
typedef unsigned uint4v __attribute__((ext_vector_type(4)));
typedef const double __attribute__((address_space(1))) Global;

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

// Workgroups of 1,024 threads read sets of `words` doubles, `stride` apart, again and again, with 16
// loads in flight: of several passes if a set is small.
template <int loads>
DEVICE inline void cached(const Global* x, double* out, int words, int stride, int passes) {
  const Global* own = x + block() * stride + lane();
  double sum = 0;
  for (int pass = 0; pass < passes; pass += 16 / loads) {
    for (int first = 0; first < words; first += loads * 1024) {
      double part[16];
#pragma unroll
      for (int i = 0; i < 16; i++) {
        if (i % loads == 0) asm volatile("" : "+v"(own));  // not the loads of the pass before
        part[i] = own[first + i % loads * 1024];
      }
      asm volatile("" ::: "memory");  // sums come after all loads
#pragma unroll
      for (int i = 0; i < 16; i++) {
        asm volatile("" : "+v"(part[i]));
        sum += part[i];
      }
    }
  }
  if (sum == 123.0) out[lane()] = sum;
}
GLOBAL void cached2(const Global* x, double* out, int words, int stride, int passes) {
  cached<2>(x, out, words, stride, passes);
}
GLOBAL void cached16(const Global* x, double* out, int words, int stride, int passes) {
  cached<16>(x, out, words, stride, passes);
}

// Workgroups of 1,024 threads read 64 doubles a thread. One of `regions` workgroups reads the same.
GLOBAL void regions(const Global* x, double* out, int regions) {
  const Global* own = x + block() % regions * 2048 + lane();
  double sum = 0;
#pragma unroll
  for (int i = 0; i < 32; i++) {
    sum += own[0] * own[1024];
    own += 2048 * regions;
  }
  if (sum == 123.0) out[lane()] = sum;
}

// Copies an element of 2 bytes a thread.
GLOBAL void copy_halves(const short* x, short* out) {
  const int i = block() * 64 + lane();
  out[i] = x[i];
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
DEVICE inline unsigned next_key(unsigned& state) {
  state = state * 1664525u + 1013904223u;
  return (state >> 28) < 2 ? 0 : (state >> 12) & 4095;
}
DEVICE inline unsigned seed() { return (block() * width() + lane()) * 2654435761u + 12345u; }
DEVICE inline void add(unsigned* bin, unsigned count) {
  __hip_atomic_fetch_add(bin, count, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
GLOBAL void histogram(unsigned* bins, int rounds) {
  unsigned state = seed();
  for (int i = 0; i < rounds; i++) add(&bins[next_key(state)], 1u);
}

// The same with one addition for each distinct key of a wave.
GLOBAL void histogram_waves(unsigned* bins, int rounds) {
  unsigned state = seed();
  for (int i = 0; i < rounds; i++) {
    const unsigned key = next_key(state);
    unsigned long long left = __builtin_amdgcn_ballot_w64(true);
    while (left) {
      const int leader = __builtin_ctzll(left);
      const unsigned one = __builtin_amdgcn_readlane(key, leader);
      const unsigned long long same = __builtin_amdgcn_ballot_w64(key == one);
      if ((lane() & 63) == leader) add(&bins[one], __builtin_popcountll(same));
      left &= ~same;
    }
  }
}

// The same with bins in LDS, from keys in memory. At the end each workgroup adds up its bins.
GLOBAL void histogram_lds(const uint4v* keys, unsigned* bins, int rounds) {
  __attribute__((shared)) static unsigned own[4096];
  for (int i = lane(); i < 4096; i += 256) own[i] = 0;
  __builtin_amdgcn_s_barrier();
  for (int i = 0; i < rounds; i++) {
    const uint4v four = keys[(i * 1216 + block()) * 256 + lane()];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      __hip_atomic_fetch_add(&own[four[k] & 4095], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    }
  }
  __builtin_amdgcn_s_barrier();
  for (int i = lane(); i < 4096; i += 256) add(&bins[i], own[i]);
}

// Additions of all waves to the same `words` words, which follow each other.
GLOBAL void additions(unsigned* at, int rounds, int words) {
  const int start = (block() * width() + lane()) % words;
  for (int i = 0; i < rounds; i++) add(&at[start], 1u);
}
