// Declarations of HIP 5.3 for headers that are older.
#pragma once
#include <hip/hip_runtime.h>
#include <hip/hip_version.h>

#if HIP_VERSION < 50300000
enum hipGraphMemAttributeType {
  hipGraphMemAttrUsedMemCurrent = 0,
  hipGraphMemAttrUsedMemHigh,
  hipGraphMemAttrReservedMemCurrent,
  hipGraphMemAttrReservedMemHigh,
};
struct hipMemAllocNodeParams {
  hipMemPoolProps poolProps;
  const hipMemAccessDesc* accessDescs;
  size_t accessDescCount, bytesize;
  void* dptr;
};
constexpr auto hipGraphNodeTypeMemFree = static_cast<hipGraphNodeType>(12);  // counted from one

extern "C" {
hipError_t hipDeviceGetGraphMemAttribute(int, hipGraphMemAttributeType, void*);
hipError_t hipDeviceSetGraphMemAttribute(int, hipGraphMemAttributeType, void*);
hipError_t hipGraphAddMemAllocNode(hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, size_t,
                                   hipMemAllocNodeParams*);
hipError_t hipGraphMemAllocNodeGetParams(hipGraphNode_t, hipMemAllocNodeParams*);
hipError_t hipGraphAddMemFreeNode(hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, size_t,
                                  void*);
hipError_t hipGraphMemFreeNodeGetParams(hipGraphNode_t, void*);
}
#endif
