// Memory of a simulated GPU in a child process. Both processes map one file as device memory, so
// copies need no messages.
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdio>
#include <functional>

#include "hip_process_state.h"

namespace hip_process {
namespace {

constexpr uint64_t kPage = 4096;

bool on_device(uint64_t address) { return address >= kBase && address < kBase + kSize; }
char* view_of(uint64_t address) {
  return on_device(address) ? state().view + (address - kBase) : reinterpret_cast<char*>(address);
}

const std::pair<const uint64_t, Range>* range_of(uint64_t address, uint64_t size) {
  auto& ranges = state().ranges;
  auto next = ranges.upper_bound(address);
  if (next == ranges.begin()) return nullptr;
  --next;
  const uint64_t offset = address - next->first, room = next->second.size;
  return offset <= room && size <= room - offset ? &*next : nullptr;
}

bool usable(uint64_t address, uint64_t size, const char* what) {
  if (!on_device(address) || range_of(address, size)) return true;
  std::fprintf(stderr, "kernel-gym: %s of %llu bytes at %#llx is not within one allocation\n", what,
               static_cast<unsigned long long>(size), static_cast<unsigned long long>(address));
  return false;
}

uint64_t allocate_kind(uint64_t size, bool visible) {
  Lock hold(state().lock);
  std::string body;
  put(body, size);
  put(body, static_cast<uint32_t>(visible));
  Answer answer = ask(kAllocate, body);
  const uint64_t place = answer.take<uint64_t>();
  if (answer.status || !place) return 0;
  state().ranges[place] = {size, visible};
  if (visible) {
    const uint64_t first = place / kPage * kPage;
    const uint64_t last = (place + size + kPage - 1) / kPage * kPage;
    mprotect(reinterpret_cast<void*>(first), last - first, PROT_READ | PROT_WRITE);
  }
  return place;
}

void charge(uint64_t size, uint32_t kind) {
  std::string body;
  put(body, size);
  put(body, kind);
  tell(kCharge, body);
}

// Runs something on a stack of its own, because the pages that it moves may hold this stack. A
// second thread would not do: this one still writes to its stack until it sleeps in join().
class OtherStack {
 public:
  // `work` must hold copies of all that it uses.
  static bool run(std::function<bool()> work) {
    static OtherStack one;  // used under the lock
    one.work_ = std::move(work);
    getcontext(&one.other_);
    one.other_.uc_stack.ss_sp = one.stack_;
    one.other_.uc_stack.ss_size = sizeof one.stack_;
    one.other_.uc_link = &one.caller_;
    makecontext(&one.other_, [] { one.done_ = one.work_(); }, 0);
    swapcontext(&one.caller_, &one.other_);
    return one.done_;
  }

 private:
  ucontext_t caller_ = {}, other_ = {};
  std::function<bool()> work_;
  bool done_ = false;
  alignas(kPage) char stack_[256 << 10];  // of the library, so no program can share its pages
};

// Whether the program has memory at all of these addresses.
bool is_mapped(uint64_t start, uint64_t size) {
  std::vector<unsigned char> resident(size / kPage);
  return !mincore(reinterpret_cast<void*>(start), size, resident.data());
}

}  // namespace

uint64_t allocate_on_device(uint64_t size) { return allocate_kind(size, false); }
uint64_t allocate_visible(uint64_t size) { return allocate_kind(size, true); }

int release(uint64_t address) {
  Lock hold(state().lock);
  State& s = state();
  if (s.ended) return kSuccess;
  const auto entry = s.ranges.find(address);
  if (entry == s.ranges.end()) return kInvalidValue;
  if (entry->second.visible) {
    const uint64_t first = address / kPage * kPage;
    const uint64_t last = (address + entry->second.size + kPage - 1) / kPage * kPage;
    mprotect(reinterpret_cast<void*>(first), last - first, PROT_NONE);
  }
  s.ranges.erase(entry);
  std::string body;
  put(body, address);
  return ask(kRelease, body).status;
}

int copy(uint64_t target, uint64_t source, uint64_t size, int) {
  Lock hold(state().lock);
  if (state().error) return state().error;
  if (!target || !source || size > kSize) return kInvalidValue;
  if (!usable(target, size, "a copy to") || !usable(source, size, "a copy from")) {
    return kInvalidValue;
  }
  std::memmove(view_of(target), view_of(source), size);
  const bool to = on_device(target), from = on_device(source);
  if (to || from) charge(size, to && from ? 3 : to ? 1 : 2);
  return kSuccess;
}

int fill_memory(uint64_t target, uint32_t value, uint64_t count, int width) {
  Lock hold(state().lock);
  if (state().error) return state().error;
  if (!target || count > kSize || !usable(target, count * width, "a fill")) return kInvalidValue;
  char* place = view_of(target);
  if (width == 1) {
    std::memset(place, static_cast<int>(value), count);
  } else {
    for (uint64_t i = 0; i < count; i++) std::memcpy(place + i * width, &value, width);
  }
  charge(count * width, 4);
  return kSuccess;
}

int range(uint64_t address, uint64_t* start, uint64_t* size, int* visible) {
  Lock hold(state().lock);
  for (const auto& item : state().shared) {
    const Shared& shared = item.second;
    if (address >= shared.start && address < shared.start + shared.pages) {
      address = shared.place + (address - shared.start);
    }
  }
  const auto* region = range_of(address, 1);
  if (!region) return kInvalidValue;
  *start = region->first;
  *size = region->second.size;
  *visible = region->second.visible;
  return kSuccess;
}

// The pages of host memory move to the file of the device, at the same host address. With size 0
// this only finds the device address of memory that is shared already.
int share_pages(uint64_t host, uint64_t size, uint64_t* address) {
  Lock hold(state().lock);
  State& s = state();
  if (on_device(host)) {
    *address = host;
    return kSuccess;
  }
  for (const auto& item : s.shared) {
    const Shared& known = item.second;
    if (host >= known.start && host < known.start + known.pages) {
      *address = known.place + (host - known.start);
      return kSuccess;
    }
  }
  if (!size || size > kSize) return kInvalidValue;
  const uint64_t start = host / kPage * kPage;
  const uint64_t pages = (host + size + kPage - 1) / kPage * kPage - start;
  if (!is_mapped(start, pages)) return kInvalidValue;
  const uint64_t allocation = allocate_kind(pages + kPage, true);
  if (!allocation) return kOutOfMemory;
  const uint64_t place = (allocation + kPage - 1) / kPage * kPage;
  const int file = s.file;
  const auto move_pages = [start, pages, place, file] {
    void* own = reinterpret_cast<void*>(start);
    std::memcpy(view_of(place), own, pages);
    return mmap(own, pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                static_cast<off_t>(place - kBase)) != MAP_FAILED;
  };
  if (!OtherStack::run(move_pages)) return kInvalidValue;
  s.shared[host] = {start, pages, place, allocation};
  *address = place + (host - start);
  return kSuccess;
}

int unshare_pages(uint64_t host) {
  Lock hold(state().lock);
  State& s = state();
  const auto entry = s.shared.find(host);
  if (entry == s.shared.end()) return kNotRegistered;
  const Shared shared = entry->second;
  const auto move_pages = [shared] {
    // The new pages are filled elsewhere and moved there at once: the heap may be on these pages,
    // with the captures of this function.
    void* fresh = mmap(nullptr, shared.pages, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return false;
    std::memcpy(fresh, view_of(shared.place), shared.pages);
    return mremap(fresh, shared.pages, shared.pages, MREMAP_MAYMOVE | MREMAP_FIXED,
                  reinterpret_cast<void*>(shared.start)) != MAP_FAILED;
  };
  if (!OtherStack::run(move_pages)) return kInvalidValue;
  s.shared.erase(entry);
  return release(shared.allocation);
}

uint64_t available() {
  Lock hold(state().lock);
  return ask(kAvailable, "").take<uint64_t>();
}

}  // namespace hip_process
