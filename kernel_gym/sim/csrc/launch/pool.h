// Threads that wait for work. Creating a thread takes as long as running dozens of workgroups.
#pragma once

#include <functional>
#include <memory>

#include "lanes.h"

class Pool {
 public:
  Pool();
  ~Pool();
  // Calls work(0) on this thread and work(1) to work(count - 1) on others, until all have returned.
  void run(u32 count, const std::function<void(u32)>& work);

 private:
  struct Threads;
  std::unique_ptr<Threads> threads_;
};
