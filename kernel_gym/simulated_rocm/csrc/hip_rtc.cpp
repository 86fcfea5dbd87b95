// hiprtc: compiles at run time with the `hipcc` of simulated_rocm/folders.py.
#include <elf.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "hip_handles.h"
#include "hip_runtime.h"

extern char** environ;

namespace {

enum : int {
  kRtcOutOfMemory = 1,
  kRtcInvalidInput = 3,
  kRtcInvalidProgram = 4,
  kRtcCompilation = 6,
  kRtcNoName = 10,
  kRtcInternal = 11,
};
constexpr const char* kRtcErrors[] = {
    "HIPRTC_SUCCESS",
    "HIPRTC_ERROR_OUT_OF_MEMORY",
    "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
    "HIPRTC_ERROR_INVALID_INPUT",
    "HIPRTC_ERROR_INVALID_PROGRAM",
    "HIPRTC_ERROR_INVALID_OPTION",
    "HIPRTC_ERROR_COMPILATION",
    "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
    "HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
    "HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
    "HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
    "HIPRTC_ERROR_INTERNAL_ERROR",
};

struct Program {
  std::string source, name, log, code;
  std::map<std::string, std::string> headers;
  std::vector<std::string> expressions;
  std::map<std::string, std::string> lowered;
};

// What is wrong with a program and with the other pointer that a call has.
int check(const Program* program, const void* other) {
  if (!handles<Program>().has(program)) return kRtcInvalidProgram;
  return other ? int{kSuccess} : int{kRtcInvalidInput};
}

// A variable that holds the address of a name expression, so that the compiler resolves it.
const std::string kVariable = "kernel_gym_name_";

// The names of what the variables `kVariable` + number point to, as relocations tell, by number.
std::map<size_t, std::string> lowered_names(const std::string& code) {
  std::map<size_t, std::string> names;
  if (code.size() < sizeof(Elf64_Ehdr)) return names;
  const char* base = code.data();
  const auto* head = reinterpret_cast<const Elf64_Ehdr*>(base);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(base + head->e_shoff);
  std::map<uint64_t, std::string> functions;  // by address
  std::map<uint64_t, size_t> variables;       // numbers by address
  std::vector<std::string> by_index;
  for (int i = 0; i < head->e_shnum; i++) {
    if (sections[i].sh_type != SHT_DYNSYM) continue;
    const char* strings = base + sections[sections[i].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(base + sections[i].sh_offset);
    for (size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); s++) {
      by_index.emplace_back(strings + symbols[s].st_name);
      const std::string& name = by_index.back();
      if (name.compare(0, kVariable.size(), kVariable) == 0) {
        variables[symbols[s].st_value] = std::strtoul(name.c_str() + kVariable.size(), nullptr, 10);
      } else if (name.size() < 3 || name.compare(name.size() - 3, 3, ".kd")) {
        functions[symbols[s].st_value] = name;
      }
    }
  }
  for (int i = 0; i < head->e_shnum; i++) {
    if (sections[i].sh_type != SHT_RELA) continue;
    const auto* entries = reinterpret_cast<const Elf64_Rela*>(base + sections[i].sh_offset);
    for (size_t e = 0; e < sections[i].sh_size / sizeof(Elf64_Rela); e++) {
      const auto variable = variables.find(entries[e].r_offset);
      if (variable == variables.end()) continue;
      const size_t symbol = ELF64_R_SYM(entries[e].r_info);
      const auto function = functions.find(static_cast<uint64_t>(entries[e].r_addend));
      if (symbol && symbol < by_index.size()) {
        names[variable->second] = by_index[symbol];
      } else if (!symbol && function != functions.end()) {
        names[variable->second] = function->second;
      }
    }
  }
  return names;
}

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return static_cast<bool>(file.flush());
}
std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The source, and for each name expression a variable that makes the compiler emit it.
std::string full_source(const Program& program) {
  std::string text = program.source + "\n";
  for (size_t i = 0; i < program.expressions.size(); i++) {
    std::string name = program.expressions[i];
    if (name[0] == '&') name.erase(0, 1);
    text += "extern \"C\" __device__ __attribute__((used)) const void* " + kVariable +
            std::to_string(i) + " = reinterpret_cast<const void*>(&" + name + ");\n";
  }
  return text;
}

int run(const std::vector<std::string>& words, const std::string& log) {
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

int compile(Program& program, int count, const char** options) {
  char folder[] = "/tmp/kernel-gym-rtc-XXXXXX";
  if (!mkdtemp(folder)) return kRtcInternal;
  const std::string place = folder, source = place + "/source.hip", object = place + "/code.co",
                    log = place + "/log";
  std::vector<std::string> files = {source, object, log};
  bool written = write_file(source, full_source(program));
  for (const auto& header : program.headers) {
    if (header.first.find('/') != std::string::npos) continue;  // only in the same folder
    files.push_back(place + "/" + header.first);
    written = written && write_file(files.back(), header.second);
  }
  std::vector<std::string> words = {hip_compiler(), "--genco", "-include", "hip/hip_runtime.h",
                                    "-include", "hip/hip_fp16.h", "-include",
                                    "hip/hip_bfloat16.h", "-I" + place, "-w"};
  for (int i = 0; i < count; i++) {
    const std::string option = options[i];
    if (option.compare(0, 18, "--gpu-architecture") == 0) {
      words.push_back("--offload-arch" + option.substr(18));
    } else {
      words.push_back(option);
    }
  }
  words.insert(words.end(), {source, "-o", object});
  const int status = written ? run(words, log) : -1;
  program.log = status == -1 ? "hiprtc needs " + words[0] + ", which cannot be run" : read_file(log);
  program.code = status ? "" : read_file(object);
  for (const std::string& file : files) unlink(file.c_str());
  rmdir(folder);
  return status || program.code.empty() ? int{kRtcCompilation} : int{kSuccess};
}

// The code object in the bundle that the compiler writes.
std::string unbundled(const std::string& bundle) {
  if (bundle.compare(0, 24, "__CLANG_OFFLOAD_BUNDLE__")) return bundle;
  uint64_t count;
  std::memcpy(&count, bundle.data() + 24, 8);
  size_t place = 32;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t fields[3];
    std::memcpy(fields, bundle.data() + place, sizeof fields);
    if (fields[1]) return bundle.substr(fields[0], fields[1]);
    place += sizeof fields + fields[2];
  }
  return "";
}

}  // namespace

extern "C" {

int hiprtcCreateProgram(Program** program, const char* source, const char* name, int count,
                        const char** headers, const char** names) {
  if (!program || !source || (count && (!headers || !names))) return kRtcInvalidInput;
  Program made{source, name ? name : "", "", "", {}, {}, {}};
  for (int i = 0; i < count; i++) made.headers[names[i]] = headers[i];
  *program = handles<Program>().add(std::move(made));
  return kSuccess;
}
int hiprtcDestroyProgram(Program** program) {
  if (!program || !handles<Program>().remove(*program)) return kRtcInvalidProgram;
  *program = nullptr;
  return kSuccess;
}
int hiprtcAddNameExpression(Program* program, const char* expression) {
  if (const int wrong = check(program, expression)) return wrong;
  program->expressions.push_back(expression);
  return kSuccess;
}
int hiprtcCompileProgram(Program* program, int count, const char** options) {
  if (const int wrong = check(program, program)) return wrong;
  if (count > 0 && !options) return kRtcInvalidInput;
  const int status = compile(*program, count, options);
  if (status) return status;
  for (const auto& lowered : lowered_names(unbundled(program->code))) {
    if (lowered.first >= program->expressions.size()) continue;
    program->lowered[program->expressions[lowered.first]] = lowered.second;
  }
  return kSuccess;
}
int hiprtcGetLoweredName(Program* program, const char* expression, const char** name) {
  if (const int wrong = check(program, expression) ?: check(program, name)) return wrong;
  const auto entry = program->lowered.find(expression);
  if (entry == program->lowered.end()) return kRtcNoName;
  *name = entry->second.c_str();
  return kSuccess;
}
int hiprtcGetCodeSize(Program* program, size_t* size) {
  if (const int wrong = check(program, size)) return wrong;
  *size = program->code.size();
  return kSuccess;
}
int hiprtcGetCode(Program* program, char* code) {
  if (const int wrong = check(program, code)) return wrong;
  std::memcpy(code, program->code.data(), program->code.size());
  return kSuccess;
}
int hiprtcGetProgramLogSize(Program* program, size_t* size) {
  if (const int wrong = check(program, size)) return wrong;
  *size = program->log.empty() ? 0 : program->log.size() + 1;
  return kSuccess;
}
int hiprtcGetProgramLog(Program* program, char* log) {
  if (const int wrong = check(program, log)) return wrong;
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return kSuccess;
}
int hiprtcVersion(int* major, int* minor) {
  if (!major || !minor) return kRtcInvalidInput;
  *major = 9;
  *minor = 0;
  return kSuccess;
}
const char* hiprtcGetErrorString(int error) {
  const bool known = error >= 0 && error < static_cast<int>(std::size(kRtcErrors));
  return known ? kRtcErrors[error] : "HIPRTC_ERROR";
}

}  // extern "C"
