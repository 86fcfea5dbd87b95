// Copies what a lane accesses, the usual sizes without a call.
#pragma once

#include "lanes.h"

SIM_INLINE void copy_access(void* to, const void* from, u32 size) {
  if (size == 4) {
    memcpy(to, from, 4);
  } else if (size == 16) {
    memcpy(to, from, 16);
  } else {
    memcpy(to, from, size);
  }
}
