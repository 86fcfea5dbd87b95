// Functions that HIP 5 expects of clang and that clang 22 has no more.
#if defined(__HIP__) && __CLANG_HIP_RUNTIME_WRAPPER_INCLUDED__
__attribute__((device)) static inline _Float16 __llvm_amdgcn_rcp_f16(_Float16 x) {
  return (_Float16)1 / x;
}
__attribute__((device)) static inline __2f16 __llvm_amdgcn_rcp_2f16(__2f16 x) {
  return __2f16{__llvm_amdgcn_rcp_f16(x.x), __llvm_amdgcn_rcp_f16(x.y)};
}
#endif
// An option that the device libraries of HIP 5 read: clang 22 does not link the file with it.
#if defined(__HIP__) && defined(__HIP_DEVICE_COMPILE__)
extern "C" __attribute__((constant, used, weak, visibility("protected")))
const unsigned char __oclc_daz_opt = 0;
#endif
