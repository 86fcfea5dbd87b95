// Kernels of a simulated GPU in a child process: code objects, launches, facts.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "hip_process_state.h"

namespace hip_process {
namespace {

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

}  // namespace

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

}  // namespace hip_process
