// The simulated GPU of a program that is not Python: a child process, which simulated_rocm/server.py
// describes. Both processes map one file as device memory, so copies need no messages.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hip_process.h"

namespace {

constexpr uint64_t kBase = 0x200000000000, kSize = 64ull << 30;  // devices/sim/memory.py
constexpr int kFaultStatus = 120;  // exit status of a faulty program that would exit with 0
constexpr uint64_t kPage = 4096;

// Numbers of requests; mirrored by simulated_rocm/server.py.
enum Request : uint32_t {
  kAllocate = 1,
  kRelease,
  kModule,
  kKernel,
  kOccupancy,
  kVariable,
  kLaunch,
  kCharge,
  kClock,
  kMissing,
  kEnd,
  kAvailable,
};

struct Range {
  uint64_t size;
  bool visible;
};
struct Argument {
  uint32_t offset, size;
};
struct Kernel {
  int status = kSuccess;
  int registers = 0, lds = 0, scratch = 0, max_threads = 0;
  std::vector<Argument> arguments;
};
// Memory of the host that kernels may use: its pages became pages of the device.
struct Shared {
  uint64_t start, pages, place, allocation;
};

struct State {
  std::recursive_mutex lock;
  int socket = -1, file = -1;
  pid_t owner = -1;
  char* view = nullptr;  // all device memory, with access rights
  bool faulty = false, ended = false;
  int error = kSuccess;  // of a launch that has failed; it stays
  std::map<uint64_t, Range> ranges;
  std::map<uint64_t, Shared> shared;
  std::map<std::string, Kernel> kernels;
  std::set<std::string> missing;
};
State& state() {
  static auto* one = new State;  // never destroyed: destructors of the program may still call
  return *one;
}
using Lock = std::lock_guard<std::recursive_mutex>;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "kernel-gym: the simulated GPU does not start: %s\n", why.c_str());
  std::fflush(nullptr);
  _exit(125);
}

// -- messages --------------------------------------------------------------------------------------

void put(std::string& out, const void* data, size_t size) {
  out.append(static_cast<const char*>(data), size);
}
template <class T>
void put(std::string& out, T value) {
  put(out, &value, sizeof value);
}

bool send_all(const char* data, size_t size) {
  while (size) {
    const ssize_t sent = send(state().socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= sent;
  }
  return true;
}
bool receive_all(char* data, size_t size) {
  while (size) {
    const ssize_t got = recv(state().socket, data, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    size -= got;
  }
  return true;
}

[[noreturn]] void lost() {
  state().ended = true;
  std::fprintf(stderr, "kernel-gym: the process of the simulated GPU has ended\n");
  std::fflush(nullptr);
  _exit(125);
}

void tell(Request request, const std::string& body) {
  State& s = state();
  if (s.ended || s.owner != getpid()) return;
  std::string message;
  put(message, static_cast<uint32_t>(request));
  put(message, static_cast<uint64_t>(body.size()));
  message += body;
  if (!send_all(message.data(), message.size())) lost();
}

struct Answer {
  int32_t status = kSuccess;
  std::string body;
  size_t place = 0;
  template <class T>
  T take() {
    T value = {};
    if (place + sizeof value <= body.size()) std::memcpy(&value, body.data() + place, sizeof value);
    place += sizeof value;
    return value;
  }
};

Answer ask(Request request, const std::string& body) {
  State& s = state();
  Answer answer;
  if (s.ended) return answer;
  if (s.owner != getpid()) {
    std::fprintf(stderr, "kernel-gym: a forked child cannot use the GPU of its parent\n");
    answer.status = kInvalidHandle;
    return answer;
  }
  tell(request, body);
  uint64_t size = 0;
  char head[12];
  if (!receive_all(head, sizeof head)) lost();
  std::memcpy(&answer.status, head, 4);
  std::memcpy(&size, head + 4, 8);
  answer.body.resize(size);
  if (size && !receive_all(&answer.body[0], size)) lost();
  return answer;
}

// -- memory ----------------------------------------------------------------------------------------

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

void charge(uint64_t size, uint32_t kind) {
  std::string body;
  put(body, size);
  put(body, kind);
  tell(kCharge, body);
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

// -- kernels ---------------------------------------------------------------------------------------

const Kernel& find_kernel(const std::string& name) {
  auto& kernels = state().kernels;
  auto entry = kernels.find(name);
  if (entry != kernels.end()) return entry->second;
  Answer answer = ask(kKernel, name);
  Kernel kernel;
  kernel.status = answer.status;
  if (answer.status) {
    state().faulty = true;
  } else {
    for (int* value : {&kernel.registers, &kernel.lds, &kernel.scratch, &kernel.max_threads}) {
      *value = answer.take<int32_t>();
    }
    kernel.arguments.resize(answer.take<uint32_t>());
    for (Argument& argument : kernel.arguments) argument = answer.take<Argument>();
  }
  return kernels[name] = kernel;
}

// Prints what the kernel has printed: pieces of {error output or not, bytes, text}.
void print(Answer& answer) {
  while (answer.place < answer.body.size()) {
    const bool to_stderr = answer.take<uint32_t>();
    const uint32_t size = answer.take<uint32_t>();
    std::fwrite(answer.body.data() + answer.place, 1, size, to_stderr ? stderr : stdout);
    answer.place += size;
  }
}

int pack(const char* name, void** args, uint64_t packed, std::string* segment) {
  const Kernel& kernel = find_kernel(name);
  if (kernel.status) return kernel.status;
  const size_t given = packed ? 1 : kernel.arguments.size();  // null arguments are the caller's fault
  for (size_t i = 0; i < given; i++) {
    if (!args || !args[i]) return kInvalidValue;
  }
  uint64_t size = packed;
  for (const Argument& a : kernel.arguments) size = std::max<uint64_t>(size, a.offset + a.size);
  segment->assign(size, '\0');
  if (packed) {
    std::memcpy(&(*segment)[0], args[0], packed);
  } else {
    for (size_t i = 0; i < kernel.arguments.size(); i++) {
      const Argument& a = kernel.arguments[i];
      std::memcpy(&(*segment)[a.offset], args[i], a.size);
    }
  }
  return kSuccess;
}

int launch(const char* name, const uint32_t* grid, const uint32_t* block, void** args,
           uint64_t shared, uint64_t packed) {
  Lock hold(state().lock);
  State& s = state();
  if (s.error) return s.error;
  std::string segment;
  if (const int wrong = pack(name, args, packed, &segment)) return wrong;
  std::string body;
  for (int i = 0; i < 3; i++) put(body, grid[i]);
  for (int i = 0; i < 3; i++) put(body, block[i]);
  put(body, shared);
  put(body, static_cast<uint32_t>(std::strlen(name)));
  body += name;
  body += segment;
  Answer answer = ask(kLaunch, body);
  print(answer);
  if (answer.status == kLaunchFailure) {
    s.faulty = true;
    s.error = kLaunchFailure;
  }
  return answer.status;
}

int facts(const char* name, uint64_t threads, uint64_t shared, KernelFacts* result) {
  Lock hold(state().lock);
  const bool was_faulty = state().faulty;
  const Kernel& kernel = find_kernel(name);
  if (kernel.status == kNotFound) state().faulty = was_faulty;  // the program only asked
  if (kernel.status) return kNotFound;
  std::string body;
  put(body, threads);
  put(body, shared);
  body += name;
  const int workgroups = ask(kOccupancy, body).take<int32_t>();
  *result = {kernel.registers, kernel.lds, kernel.scratch, kernel.max_threads, workgroups};
  return kSuccess;
}

int variable(const char* name, uint64_t* address, uint64_t* size) {
  Lock hold(state().lock);
  Answer answer = ask(kVariable, name);
  *address = answer.take<uint64_t>();
  *size = answer.take<uint64_t>();
  if (answer.status) return kInvalidSymbol;
  state().ranges[*address] = {*size, false};
  return kSuccess;
}

// The bytes of an image: a bundle of code objects, one code object, or assembler text.
uint64_t image_size(const char* image) {
  uint64_t size = 0;
  if (!std::memcmp(image, "\177ELF", 4)) {
    uint64_t sections;
    uint16_t entry, count;
    std::memcpy(&sections, image + 40, 8);
    std::memcpy(&entry, image + 58, 2);
    std::memcpy(&count, image + 60, 2);
    return sections + static_cast<uint64_t>(entry) * count;
  }
  if (!std::memcmp(image, "CCOB", 4)) {  // compressed; its third version has a longer head
    uint16_t version;
    std::memcpy(&version, image + 4, 2);
    if (version >= 3) {
      std::memcpy(&size, image + 8, 8);
    } else {
      uint32_t bytes;
      std::memcpy(&bytes, image + 8, 4);
      size = bytes;
    }
    return size;
  }
  if (std::strncmp(image, "__CLANG_OFFLOAD_BUNDLE__", 24)) return std::strlen(image);
  uint64_t count;
  std::memcpy(&count, image + 24, 8);
  const char* entry = image + 32;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t fields[3];
    std::memcpy(fields, entry, sizeof fields);
    size = std::max(size, fields[0] + fields[1]);
    entry += sizeof fields + fields[2];
  }
  return std::max<uint64_t>(size, entry - image);
}

int module(const void* image, const char* path) {
  Lock hold(state().lock);
  std::string content;
  if (path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return 0;
    content.assign(std::istreambuf_iterator<char>(file), {});
  } else {
    if (!image) return 0;
    const char* bytes = static_cast<const char*>(image);
    content.assign(bytes, image_size(bytes));
  }
  Answer answer = ask(kModule, content);
  if (answer.status) state().faulty = true;
  return answer.status ? 0 : answer.take<int32_t>();
}

int synchronize() { return state().error; }

double clock_now() {
  Lock hold(state().lock);
  return ask(kClock, "").take<double>();
}

void missing(const char* api) {
  Lock hold(state().lock);
  if (!state().missing.insert(api).second) return;
  std::fprintf(stderr, "kernel-gym: %s is not simulated; it returns hipErrorNotSupported\n", api);
  tell(kMissing, api);
}

// -- start and end -----------------------------------------------------------------------------------

std::string folder_of_library() {
  Dl_info info = {};
  dladdr(reinterpret_cast<void*>(&hip_start_process), &info);
  const std::string path = info.dli_fname ? info.dli_fname : "";
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// What simulated_rocm/folders.py writes beside the library.
struct Installation {
  std::string python, root, compiler;
};
Installation installation() {
  const std::string folder = folder_of_library();
  Installation paths;
  std::ifstream file(folder + "/installation");
  if (std::getline(file, paths.python) && std::getline(file, paths.root) &&
      std::getline(file, paths.compiler)) {
    return paths;
  }
  return {"python3", folder + "/../..", "hipcc"};
}

[[noreturn]] void become_server(int socket, int file, pid_t program) {
  const Installation paths = installation();
  const std::string code =
      "import sys; sys.path.insert(0, sys.argv[1]); "
      "from kernel_gym.simulated_rocm.server import main; main(*map(int, sys.argv[2:]))";
  const std::string numbers[3] = {std::to_string(socket), std::to_string(file),
                                  std::to_string(program)};
  unsetenv("LD_PRELOAD");
  execlp(paths.python.c_str(), paths.python.c_str(), "-I", "-c", code.c_str(), paths.root.c_str(),
         numbers[0].c_str(), numbers[1].c_str(), numbers[2].c_str(), nullptr);
  std::fprintf(stderr, "kernel-gym: cannot run %s: %s\n", paths.python.c_str(), std::strerror(errno));
  _exit(125);
}

// A grandchild, so that it is no child that the program could wait for.
int spawn(int file) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) give_up(std::strerror(errno));
  const pid_t program = getpid(), child = fork();
  if (child < 0) give_up(std::strerror(errno));
  if (!child) {
    if (fork()) _exit(0);
    fcntl(pair[1], F_SETFD, 0);
    fcntl(file, F_SETFD, 0);
    close(pair[0]);
    become_server(pair[1], file, program);
  }
  close(pair[1]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return pair[0];
}

// Runs after the program's own handlers, because it is registered before them.
void at_exit(int status, void*) {
  State& s = state();
  if (s.owner != getpid() || s.ended) return;
  ask(kEnd, "");
  s.ended = true;
  if (status || !s.faulty) return;
  std::fprintf(stderr,
               "kernel-gym: the program would exit with 0, although the GPU reported an error (see "
               "above); it exits with %d\n",
               kFaultStatus);
  std::fflush(nullptr);
  _exit(kFaultStatus);
}
__attribute__((constructor)) void watch_exit() { on_exit(at_exit, nullptr); }

}  // namespace

int hip_pack(const char* kernel, void** args, std::string* segment) {
  Lock hold(state().lock);
  return pack(kernel, args, 0, segment);
}

std::string hip_compiler() { return installation().compiler; }

void* hip_function(const char* name) {
  Dl_info info = {};
  if (std::strncmp(name, "hip", 3) || !dladdr(reinterpret_cast<void*>(&hip_function), &info)) {
    return nullptr;
  }
  static void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return library ? dlsym(library, name) : nullptr;
}

Callbacks hip_start_process(Device* device) {
  State& s = state();
  s.file = memfd_create("kernel-gym-device", MFD_CLOEXEC);
  if (s.file < 0 || ftruncate(s.file, kSize)) give_up("no memory file");
  void* base = reinterpret_cast<void*>(kBase);
  if (mmap(base, kSize, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, s.file, 0) !=
      base) {
    give_up("the addresses of its memory are in use");
  }
  void* view = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s.file, 0);
  if (view == MAP_FAILED) give_up(std::strerror(errno));
  s.view = static_cast<char*>(view);
  s.socket = spawn(s.file);
  s.owner = getpid();
  if (!receive_all(reinterpret_cast<char*>(device), sizeof *device)) {
    give_up("its process ended at once, see above");
  }
  return {launch,      allocate_on_device, release, copy,        fill_memory,   clock_now,
          facts,       variable,           module,  synchronize, allocate_visible, range,
          share_pages, unshare_pages,      available, missing};
}
