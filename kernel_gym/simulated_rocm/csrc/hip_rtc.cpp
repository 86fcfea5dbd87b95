// hiprtc: compiles at run time with the `hipcc` of simulated_rocm/folders.py.
#include <elf.h>

#include <cstdlib>
#include <cstring>

#include "hip_rtc.h"

namespace {

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

// Turns an option of hiprtc into one of hipcc.
std::string translated(const std::string& option) {
  const bool is_target = option.compare(0, 18, "--gpu-architecture") == 0;
  return is_target ? "--offload-arch" + option.substr(18) : option;
}

int compile(Program& program, int count, const char** options) {
  Scratch scratch;
  if (!scratch.is_there()) return kRtcInternal;
  bool written = scratch.write("source.hip", full_source(program));
  for (const auto& header : program.headers) {
    if (header.first.find('/') != std::string::npos) continue;  // only in the same folder
    written = scratch.write(header.first, header.second) && written;
  }
  std::vector<std::string> words = {hip_compiler(), "--genco", "-include", "hip/hip_runtime.h",
                                    "-include", "hip/hip_fp16.h", "-include",
                                    "hip/hip_bfloat16.h", "-I" + scratch.folder(), "-w"};
  program.is_bitcode = false;
  for (int i = 0; i < count; i++) {
    words.push_back(translated(options[i]));
    program.is_bitcode = program.is_bitcode || words.back() == "-fgpu-rdc";
  }
  if (program.is_bitcode) words.insert(words.end(), {"-c", "-emit-llvm", "--no-gpu-bundle-output"});
  const std::string object = scratch.path("code.co"), log = scratch.path("log");
  words.insert(words.end(), {scratch.folder() + "/source.hip", "-o", object});
  const int status = written ? hip_run(words, log) : -1;
  program.log =
      status == -1 ? "hiprtc needs " + words[0] + ", which cannot be run" : hip_read_file(log);
  program.code = status ? "" : hip_read_file(object);
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
  if (status || program->is_bitcode) return status;
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
int hiprtcGetBitcodeSize(Program* program, size_t* size) {
  if (!size) return kRtcInvalidInput;
  if (!handles<Program>().has(program) || !program->is_bitcode) return kRtcInvalidProgram;
  return hiprtcGetCodeSize(program, size);
}
int hiprtcGetBitcode(Program* program, char* code) {
  if (!code) return kRtcInvalidInput;
  if (!handles<Program>().has(program) || !program->is_bitcode) return kRtcInvalidProgram;
  return hiprtcGetCode(program, code);
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
  if (error == kRtcLinking) return "HIPRTC_ERROR_LINKING";
  const bool known = error >= 0 && error < static_cast<int>(std::size(kRtcErrors));
  return known ? kRtcErrors[error] : "HIPRTC_ERROR";
}

}  // extern "C"
