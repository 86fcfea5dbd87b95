#include "launch/pool.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace {

// Number of polls for the end of the other threads before sleeping. They mostly end together, and
// waking up takes longer.
constexpr u32 kLooks = 400;

}  // namespace

struct Pool::Threads {
  const pid_t process = getpid();
  std::mutex mutex;
  std::condition_variable begin, end;
  const std::function<void(u32)>* work = nullptr;
  u64 round = 0;
  u32 wanted = 0;  // workers of this round
  bool over = false;
  std::atomic<u32> busy{0};
  std::vector<std::thread> all;

  ~Threads() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      over = true;
    }
    begin.notify_all();
    for (std::thread& thread : all) thread.join();
  }

  void serve(u32 number, u64 seen) {
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(mutex);
        begin.wait(lock, [&] { return over || round != seen; });
        if (over) return;
        seen = round;
        if (number >= wanted) continue;
      }
      (*work)(number);
      const std::lock_guard<std::mutex> lock(mutex);
      if (--busy == 0) end.notify_one();
    }
  }

  void run(u32 count, const std::function<void(u32)>& what) {
    while (all.size() + 1 < count) all.emplace_back(&Threads::serve, this, all.size() + 1, round);
    {
      const std::lock_guard<std::mutex> lock(mutex);
      work = &what;
      wanted = count;
      busy = count - 1;
      round++;
    }
    begin.notify_all();
    what(0);
    for (u32 i = 0; i < kLooks && busy.load(); i++) std::this_thread::yield();
    std::unique_lock<std::mutex> lock(mutex);
    end.wait(lock, [&] { return busy.load() == 0; });
  }
};

Pool::Pool() = default;
Pool::~Pool() {
  if (threads_ && threads_->process != getpid()) threads_.release();
}

void Pool::run(u32 count, const std::function<void(u32)>& work) {
  if (count == 1) return work(0);
  // A forked process has no threads, and their locks are in any state, so their memory is leaked.
  if (threads_ && threads_->process != getpid()) threads_.release();
  if (!threads_) threads_ = std::make_unique<Threads>();
  threads_->run(count, work);
}
