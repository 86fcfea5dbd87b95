// HIP host runtime: calls on the default stream of each thread, which is as in order as the other.
// A program has them with -fgpu-default-stream=per-thread.
#include "hip_memory.h"

using Call = void (*)(void*);
using StreamCall = void (*)(void*, int, void*);

#define SAME(name, parameters, arguments) \
  int name parameters;                    \
  int name##_spt parameters { return name arguments; }

extern "C" {

SAME(hipMemcpyAsync, (void* to, const void* from, size_t size, int kind, void* stream),
     (to, from, size, kind, stream))
SAME(hipMemcpy2D,
     (void* to, size_t to_pitch, const void* from, size_t pitch, size_t width, size_t height,
      int kind),
     (to, to_pitch, from, pitch, width, height, kind))
SAME(hipMemcpy2DAsync,
     (void* to, size_t to_pitch, const void* from, size_t pitch, size_t width, size_t height,
      int kind, void* stream),
     (to, to_pitch, from, pitch, width, height, kind, stream))
SAME(hipMemcpy3D, (const Copy3D* copy), (copy))
SAME(hipMemcpy3DAsync, (const Copy3D* copy, void* stream), (copy, stream))
SAME(hipMemcpyToSymbol,
     (const void* symbol, const void* from, size_t size, size_t offset, int kind),
     (symbol, from, size, offset, kind))
SAME(hipMemcpyToSymbolAsync,
     (const void* symbol, const void* from, size_t size, size_t offset, int kind, void* stream),
     (symbol, from, size, offset, kind, stream))
SAME(hipMemcpyFromSymbol, (void* to, const void* symbol, size_t size, size_t offset, int kind),
     (to, symbol, size, offset, kind))
SAME(hipMemcpyFromSymbolAsync,
     (void* to, const void* symbol, size_t size, size_t offset, int kind, void* stream),
     (to, symbol, size, offset, kind, stream))
SAME(hipMemsetAsync, (void* to, int value, size_t size, void* stream), (to, value, size, stream))
SAME(hipMemset2D, (void* to, size_t pitch, int value, size_t width, size_t height),
     (to, pitch, value, width, height))
SAME(hipMemset2DAsync,
     (void* to, size_t pitch, int value, size_t width, size_t height, void* stream),
     (to, pitch, value, width, height, stream))
SAME(hipMemset3D, (Pitched to, int value, Extent extent), (to, value, extent))
SAME(hipMemset3DAsync, (Pitched to, int value, Extent extent, void* stream),
     (to, value, extent, stream))

SAME(hipEventRecord, (void* event, void* stream), (event, stream))
SAME(hipLaunchHostFunc, (void* stream, Call call, void* data), (stream, call, data))
SAME(hipLaunchCooperativeKernel,
     (const void* host, Dim3 grid, Dim3 block, void** args, unsigned shared, void* stream),
     (host, grid, block, args, shared, stream))
SAME(hipStreamAddCallback, (void* stream, StreamCall call, void* data, unsigned flags),
     (stream, call, data, flags))
SAME(hipStreamBeginCapture, (void* stream, int mode), (stream, mode))
SAME(hipStreamEndCapture, (void* stream, void** graph), (stream, graph))
SAME(hipStreamGetCaptureInfo, (void* stream, int* state, unsigned long long* number),
     (stream, state, number))
SAME(hipStreamGetCaptureInfo_v2,
     (void* stream, int* state, unsigned long long* number, void** graph, void* const** nodes,
      size_t* count),
     (stream, state, number, graph, nodes, count))
SAME(hipStreamGetFlags, (void* stream, unsigned* flags), (stream, flags))
SAME(hipStreamGetPriority, (void* stream, int* priority), (stream, priority))
SAME(hipStreamIsCapturing, (void* stream, int* state), (stream, state))
SAME(hipStreamQuery, (void* stream), (stream))
SAME(hipStreamWaitEvent, (void* stream, void* event, unsigned flags), (stream, event, flags))

}  // extern "C"
