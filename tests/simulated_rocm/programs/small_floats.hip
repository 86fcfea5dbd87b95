// hip_bf16.h and hip_fp8.h: host and kernels agree, and the values are those of the formats.
#include <hip/hip_bf16.h>
#include <hip/hip_fp8.h>

#include <cmath>

#include "../host_runtime/check.h"
__global__ void convert(__hip_bfloat16* b, float* f, unsigned char* c) {
  const int t = threadIdx.x;
  const __hip_bfloat16 a = __float2bfloat16(1.1f * t);
  b[t] = __hadd(a, a) * __float2bfloat16(0.5f) + hsqrt(a);
  f[t] = __hip_fp8_e4m3_fnuz(1.7f * t - 20.f);
  c[t] = __hip_cvt_float_to_fp8(3.3f * t, __HIP_SATFINITE, __HIP_E5M2);
}
int main() {
  __hip_bfloat16* b;
  float* f;
  unsigned char* c;
  OK(hipMallocManaged(&b, 128));
  OK(hipMallocManaged(&f, 256));
  OK(hipMallocManaged(&c, 64));
  convert<<<1, 64>>>(b, f, c);
  OK(hipDeviceSynchronize());
  for (int t = 0; t < 64; t++) {
    const __hip_bfloat16 a = 1.1f * t;
    CHECK(float(b[t]) == float((a + a) * __hip_bfloat16(0.5f) + __hip_bfloat16(sqrtf(a))));
    CHECK(f[t] == float(__hip_fp8_e4m3_fnuz(1.7f * t - 20.f)));
    CHECK(c[t] == __hip_cvt_float_to_fp8(3.3f * t, __HIP_SATFINITE, __HIP_E5M2));
  }
  CHECK(float(__hip_bfloat16(1.f + 1.f / 256)) == 1.f);      // a tie goes to even
  CHECK(float(__hip_bfloat16(1.f + 3.f / 256)) == 1.015625f);
  CHECK(std::isnan(float(__hip_bfloat16(NAN))));
  CHECK(float(__hip_fp8_e4m3_fnuz(1000.f)) == 240.f && float(__hip_fp8_e4m3(1000.f)) == 448.f);
  CHECK(float(__hip_fp8_e5m2_fnuz(1e6f)) == 57344.f && float(__hip_fp8_e4m3(0.001f)) == 1.f / 512);
  CHECK(std::isnan(float(__hip_fp8_e4m3_fnuz(NAN))) && __hip_fp8_e4m3_fnuz(-0.f).__x == 0);
  return 0;
}
