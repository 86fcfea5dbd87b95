// hiprtc: what its compiler and its linker share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hip_handles.h"
#include "hip_runtime.h"

enum : int {
  kRtcOutOfMemory = 1,
  kRtcCreation = 2,
  kRtcInvalidInput = 3,
  kRtcInvalidProgram = 4,
  kRtcInvalidOption = 5,
  kRtcCompilation = 6,
  kRtcNoName = 10,
  kRtcInternal = 11,
  kRtcLinking = 100,
};
struct Program {
  std::string source, name, log, code;
  std::map<std::string, std::string> headers;
  std::vector<std::string> expressions;
  std::map<std::string, std::string> lowered;
  bool is_bitcode = false;  // compiled with -fgpu-rdc: it must be linked
};

// Files of one compilation, in a folder that ends with it.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  bool is_there() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name);  // a file that is removed at the end
  bool write(const std::string& name, const std::string& content);

 private:
  std::string folder_;
  std::vector<std::string> files_;
};
std::string hip_read_file(const std::string& path);
// Runs a command with its output in a file; its status, or -1 if it cannot be run.
int hip_run(const std::vector<std::string>& words, const std::string& log);
