// Functions that HIP 6 expects of the device library and that the one of HIP 5 lacks.
#if defined(__HIP__)
/// Returns the counter of 100 MHz, which `wall_clock64` reads.
extern "C" __attribute__((device, weak)) unsigned long long __ockl_steadyctr_u64() {
  return __builtin_amdgcn_s_memrealtime();
}
#endif
