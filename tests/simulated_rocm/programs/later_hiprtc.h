// Declarations of HIP 5.3 for headers that are older.
#pragma once
#include <hip/hip_version.h>
#include <hip/hiprtc.h>

#if HIP_VERSION < 50300000
enum hiprtcJIT_option : int {};
enum hiprtcJITInputType : int {};
typedef struct ihiprtcLinkState* hiprtcLinkState;

extern "C" {
hiprtcResult hiprtcGetBitcode(hiprtcProgram, char*);
hiprtcResult hiprtcGetBitcodeSize(hiprtcProgram, size_t*);
hiprtcResult hiprtcLinkCreate(unsigned, hiprtcJIT_option*, void**, hiprtcLinkState*);
hiprtcResult hiprtcLinkAddFile(hiprtcLinkState, hiprtcJITInputType, const char*, unsigned,
                               hiprtcJIT_option*, void**);
hiprtcResult hiprtcLinkAddData(hiprtcLinkState, hiprtcJITInputType, void*, size_t, const char*,
                               unsigned, hiprtcJIT_option*, void**);
hiprtcResult hiprtcLinkComplete(hiprtcLinkState, void**, size_t*);
hiprtcResult hiprtcLinkDestroy(hiprtcLinkState);
}
#endif
