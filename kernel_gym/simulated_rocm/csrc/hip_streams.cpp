// HIP host runtime: streams and events. Everything is in order already, and has its modelled time.
#include "hip_streams.h"

namespace {

struct Event {
  double seconds = -1;
  std::shared_ptr<const CapturePoint> captured = nullptr;
  bool has_time = true;
};

int status() { return hip_note(gpu().synchronize()); }
int status_of(const void* stream) {
  if (hip_is_captured(stream)) return hip_note(kCaptureUnsupported);
  return hip_check_stream(stream) ?: status();
}
int check_event(const void* event) {
  return hip_note(handles<Event>().has(event) ? kSuccess : kInvalidHandle);
}

}  // namespace

bool hip_is_event(const void* event) { return handles<Event>().has(event); }

extern "C" {

int hipDeviceSynchronize() { return status(); }
int hipCtxSynchronize() { return status(); }

int hipStreamCreateWithPriority(Stream** stream, unsigned flags, int priority) {
  if (!stream || flags > 1) return hip_note(kInvalidValue);
  *stream = handles<Stream>().add({flags, priority});
  return hip_note(kSuccess);
}
int hipStreamCreateWithFlags(Stream** stream, unsigned flags) {
  return hipStreamCreateWithPriority(stream, flags, 0);
}
int hipStreamCreate(Stream** stream) { return hipStreamCreateWithPriority(stream, 0, 0); }
int hipExtStreamCreateWithCUMask(Stream** stream, uint32_t, const uint32_t*) {
  return hipStreamCreate(stream);
}
int hipStreamDestroy(Stream* stream) {
  if (hip_is_default(stream)) return hip_note(kInvalidHandle);
  return hip_note(handles<Stream>().remove(stream) ? kSuccess : kDestroyed);
}
int hipStreamSynchronize(void* stream) { return status_of(stream); }
int hipStreamSynchronize_spt(void* stream) { return status_of(stream); }
int hipStreamQuery(void* stream) { return status_of(stream); }
int hipStreamWaitEvent(void* stream, Event* event, unsigned flags) {
  if (event && flags) return hip_note(kInvalidValue);
  if (const int wrong = hip_check_stream(stream) ?: check_event(event)) return wrong;
  return hip_note(event->captured ? hip_join_capture(stream, *event->captured) : int{kSuccess});
}
int hipStreamGetFlags(Stream* stream, unsigned* flags) {
  if (!stream) return hip_note(kInvalidValue);
  return hip_check_stream(stream) ?: hip_store(flags, hip_is_default(stream) ? 0 : stream->flags);
}
int hipStreamGetPriority(Stream* stream, int* priority) {
  return hip_check_stream(stream)
             ?: hip_store(priority, hip_is_default(stream) ? 0 : stream->priority);
}
int hipGetStreamDeviceId(void*) { return 0; }
int hipStreamGetDevice(void* stream, int* device) {
  return hip_check_stream(stream) ?: hip_store(device, 0);
}
int hipStreamAddCallback(void* stream, void (*call)(void*, int, void*), void* data, unsigned) {
  if (!call) return hip_note(kInvalidValue);
  if (const int wrong = hip_check_stream(stream)) return wrong;
  call(stream, gpu().synchronize(), data);
  return hip_note(kSuccess);
}
int hipLaunchHostFunc(void* stream, void (*call)(void*), void* data) {
  if (!call) return hip_note(kInvalidValue);
  return hip_queue(stream, [=] {
    call(data);
    return static_cast<int>(kSuccess);
  });
}

int hipEventCreate(Event** event) {
  if (!event) return hip_note(kInvalidValue);
  *event = handles<Event>().add({});
  return hip_note(kSuccess);
}
int hipEventCreateWithFlags(Event** event, unsigned flags) {
  constexpr unsigned kBlocking = 1, kNoTiming = 2, kOtherProcess = 4, kToDevice = 0x40000000,
                     kToSystem = 0x80000000, kNoFence = 0x20000000;
  constexpr unsigned kAll = kBlocking | kNoTiming | kOtherProcess | kToDevice | kToSystem | kNoFence;
  const unsigned releases = flags & (kToDevice | kToSystem | kNoFence);
  if (!event || flags & ~kAll || releases & (releases - 1)) return hip_note(kInvalidValue);
  if (flags & kOtherProcess && !(flags & kNoTiming)) return hip_note(kInvalidValue);
  *event = handles<Event>().add({});
  (*event)->has_time = !(flags & kNoTiming);
  return hip_note(kSuccess);
}
int hipEventDestroy(Event* event) {
  if (!event) return hip_note(kInvalidHandle);
  return hip_note(handles<Event>().remove(event) ? kSuccess : kDestroyed);
}
int hipEventRecord(Event* event, void* stream) {
  if (const int wrong = check_event(event) ?: hip_check_stream(stream)) return wrong;
  event->captured = hip_capture_point(stream);
  if (event->captured) return hip_note(kSuccess);  // it marks a place, and is no node
  return hip_queue(stream, [event] {
    if (handles<Event>().has(event)) event->seconds = gpu().clock();
    return static_cast<int>(kSuccess);
  });
}
int hipEventRecordWithFlags(Event* event, void* stream, unsigned) {
  return hipEventRecord(event, stream);
}
int hipEventSynchronize(Event* event) { return check_event(event) ?: status(); }
int hipEventQuery(Event* event) { return check_event(event) ?: status(); }
int hipEventElapsedTime(float* milliseconds, Event* start, Event* stop) {
  if (!milliseconds) return hip_note(kInvalidValue);
  if (const int wrong = check_event(start) ?: check_event(stop)) return wrong;
  if (!start->has_time || !stop->has_time) return hip_note(kInvalidHandle);
  if (start->seconds < 0 || stop->seconds < 0) return hip_note(kInvalidHandle);  // never recorded
  *milliseconds = static_cast<float>((stop->seconds - start->seconds) * 1e3);
  return hip_note(kSuccess);
}

int hipLaunchKernel(const void*, Dim3, Dim3, void**, size_t, void*);
int hipExtLaunchKernel(const void* host, Dim3 grid, Dim3 block, void** args, size_t shared,
                       void* stream, Event* start, Event* stop, int) {
  for (Event* event : {start, stop}) {
    if (event && check_event(event)) return kInvalidHandle;
  }
  if (start) start->seconds = gpu().clock();
  const int launched = hipLaunchKernel(host, grid, block, args, shared, stream);
  if (stop) stop->seconds = gpu().clock();
  return launched;
}

}  // extern "C"
