// HIP host runtime: streams and events. Everything is in order already, and has its modelled time.
#include "hip_runtime.h"

namespace {

struct Event {
  double seconds = -1;
};
struct Stream {
  unsigned flags = 0;
  int priority = 0;
};

int status() { return hip_note(gpu().synchronize()); }

}  // namespace

extern "C" {

int hipDeviceSynchronize() { return status(); }
int hipCtxSynchronize() { return status(); }

int hipStreamCreateWithPriority(Stream** stream, unsigned flags, int priority) {
  if (!stream) return hip_note(kInvalidValue);
  *stream = new Stream{flags, priority};
  return kSuccess;
}
int hipStreamCreateWithFlags(Stream** stream, unsigned flags) {
  return hipStreamCreateWithPriority(stream, flags, 0);
}
int hipStreamCreate(Stream** stream) { return hipStreamCreateWithPriority(stream, 0, 0); }
int hipExtStreamCreateWithCUMask(Stream** stream, uint32_t, const uint32_t*) {
  return hipStreamCreate(stream);
}
int hipStreamDestroy(Stream* stream) {
  if (address_of(stream) > 2) delete stream;  // 1 and 2 are names of the default stream
  return kSuccess;
}
int hipStreamSynchronize(void*) { return status(); }
int hipStreamSynchronize_spt(void*) { return status(); }
int hipStreamQuery(void*) { return status(); }
int hipStreamWaitEvent(void*, void*, unsigned) { return kSuccess; }
int hipStreamGetFlags(Stream* stream, unsigned* flags) {
  *flags = address_of(stream) > 2 ? stream->flags : 0;
  return kSuccess;
}
int hipStreamGetPriority(Stream* stream, int* priority) {
  *priority = address_of(stream) > 2 ? stream->priority : 0;
  return kSuccess;
}
int hipGetStreamDeviceId(void*) { return 0; }
int hipStreamGetDevice(void*, int* device) {
  *device = 0;
  return kSuccess;
}
int hipStreamIsCapturing(void*, int* state) {
  *state = 0;
  return kSuccess;
}
int hipStreamAddCallback(void* stream, void (*call)(void*, int, void*), void* data, unsigned) {
  call(stream, gpu().synchronize(), data);
  return kSuccess;
}
int hipLaunchHostFunc(void*, void (*call)(void*), void* data) {
  call(data);
  return kSuccess;
}

int hipEventCreate(Event** event) {
  if (!event) return hip_note(kInvalidValue);
  *event = new Event;
  return kSuccess;
}
int hipEventCreateWithFlags(Event** event, unsigned) { return hipEventCreate(event); }
int hipEventDestroy(Event* event) {
  delete event;
  return kSuccess;
}
int hipEventRecord(Event* event, void*) {
  if (!event) return hip_note(kInvalidValue);
  event->seconds = gpu().clock();
  return kSuccess;
}
int hipEventRecordWithFlags(Event* event, void* stream, unsigned) {
  return hipEventRecord(event, stream);
}
int hipEventSynchronize(Event*) { return status(); }
int hipEventQuery(Event*) { return status(); }
int hipEventElapsedTime(float* milliseconds, Event* start, Event* stop) {
  if (!start || !stop || start->seconds < 0 || stop->seconds < 0) return hip_note(kInvalidValue);
  *milliseconds = static_cast<float>((stop->seconds - start->seconds) * 1e3);
  return kSuccess;
}

int hipLaunchKernel(const void*, Dim3, Dim3, void**, size_t, void*);
int hipExtLaunchKernel(const void* host, Dim3 grid, Dim3 block, void** args, size_t shared,
                       void* stream, Event* start, Event* stop, int) {
  if (start) start->seconds = gpu().clock();
  const int launched = hipLaunchKernel(host, grid, block, args, shared, stream);
  if (stop) stop->seconds = gpu().clock();
  return launched;
}

}  // extern "C"
