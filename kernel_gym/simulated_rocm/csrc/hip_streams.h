// Streams: their handles, and where they are in a capture.
#pragma once

#include <memory>

#include "hip_handles.h"
#include "hip_runtime.h"

struct Stream {
  unsigned flags = 0;
  int priority = 0;
};
// 0, 1 and 2 are names of the default stream.
inline bool hip_is_default(const void* stream) { return address_of(stream) <= 2; }

// What a captured stream has recorded when an event is recorded.
struct CapturePoint;
std::shared_ptr<const CapturePoint> hip_capture_point(const void* stream);  // null: not captured
// Lets the next work of a stream wait for that point; an error, which it does not note.
int hip_join_capture(const void* stream, const CapturePoint& point);
