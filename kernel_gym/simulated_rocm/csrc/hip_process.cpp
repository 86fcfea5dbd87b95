// The simulated GPU of a program that is not Python: a child process, which simulated_rocm/server.py
// describes. This file starts and ends it.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "hip_process.h"
#include "hip_process_state.h"

using namespace hip_process;

namespace {

constexpr int kFaultStatus = 120;  // exit status of a faulty program that would exit with 0

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
