// Messages between a program and the child process of its simulated GPU.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "hip_process_state.h"

namespace hip_process {

State& state() {
  static auto* one = new State;  // never destroyed: destructors of the program may still call
  return *one;
}

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "kernel-gym: the simulated GPU does not start: %s\n", why.c_str());
  std::fflush(nullptr);
  _exit(125);
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
}  // namespace hip_process
