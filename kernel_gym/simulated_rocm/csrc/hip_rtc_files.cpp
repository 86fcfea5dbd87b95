// hiprtc: files and commands.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "hip_rtc.h"

extern char** environ;

Scratch::Scratch() {
  char folder[] = "/tmp/kernel-gym-rtc-XXXXXX";
  if (mkdtemp(folder)) folder_ = folder;
}
Scratch::~Scratch() {
  for (const std::string& file : files_) unlink(file.c_str());
  if (is_there()) rmdir(folder_.c_str());
}
std::string Scratch::path(const std::string& name) {
  files_.push_back(folder_ + "/" + name);
  return files_.back();
}
bool Scratch::write(const std::string& name, const std::string& content) {
  std::ofstream file(path(name), std::ios::binary);
  file << content;
  return static_cast<bool>(file.flush());
}

std::string hip_read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int hip_run(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), 01101 /* create, write, truncate */,
                                   0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child;
  const int failed =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}
