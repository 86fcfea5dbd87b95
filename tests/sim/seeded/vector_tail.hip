// fault: out_of_bounds_read at 5
// launch: 1 | 64 | f32(250), zeros(256)
// four elements at a time from a length that is no multiple of four
kernel void widen(const float4_* x, float4_* out) {
  const float4_ four = x[tid];
  out[tid] = four * 2.f;
}
