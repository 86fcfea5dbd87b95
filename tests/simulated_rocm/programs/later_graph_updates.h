// Declarations of HIP 6 for headers that are older.
#pragma once
#include <hip/hip_runtime.h>
#include <hip/hip_version.h>

#if HIP_VERSION < 60000000
#if HIP_VERSION < 50300000
extern "C" hipError_t hipGraphDebugDotPrint(hipGraph_t, const char*, unsigned);
#endif
struct hipGraphInstantiateParams {
  hipGraphNode_t errNode_out;
  unsigned long long flags;
  int result_out;
  hipStream_t uploadStream;
};
extern "C" {
hipError_t hipGraphNodeSetEnabled(hipGraphExec_t, hipGraphNode_t, unsigned);
hipError_t hipGraphNodeGetEnabled(hipGraphExec_t, hipGraphNode_t, unsigned*);
hipError_t hipGraphInstantiateWithParams(hipGraphExec_t*, hipGraph_t, hipGraphInstantiateParams*);
hipError_t hipGraphMemcpyNodeGetParams(hipGraphNode_t, hipMemcpy3DParms*);
}
#endif
