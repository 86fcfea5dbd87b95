// hiprtc: links bitcode to a code object. The compiler takes it into a source without text.
#include "hip_rtc.h"

namespace {

enum : int { kBitcode = 100, kCompilerWords = 10000, kCompilerWordCount = 10001 };

struct Link {
  std::vector<std::string> inputs, words;
  std::string code;
};
bool is_link(const Link* link) { return handles<Link>().has(link); }

// The words for the compiler among the options; an error if one is not known.
int read_options(unsigned count, const int* options, void** values, Link* link) {
  const char** words = nullptr;
  size_t number = 0;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == kCompilerWords) {
      words = static_cast<const char**>(values[i]);
    } else if (options[i] == kCompilerWordCount) {
      number = address_of(values[i]);
    } else if (options[i] < 0) {
      return kRtcInvalidOption;
    }
  }
  for (size_t i = 0; words && i < number; i++) link->words.push_back(words[i]);
  return kSuccess;
}

int add_input(Link* link, int type, std::string content) {
  if (!is_link(link) || type != kBitcode || content.empty()) return kRtcInvalidInput;
  link->inputs.push_back(std::move(content));
  return kSuccess;
}

int complete(Link& link) {
  Scratch scratch;
  bool written = scratch.is_there() && scratch.write("empty.hip", "\n");
  std::vector<std::string> words = {hip_compiler(), "--genco", "-w"};
  for (size_t i = 0; i < link.inputs.size(); i++) {
    const std::string name = "input" + std::to_string(i) + ".bc";
    written = written && scratch.write(name, link.inputs[i]);
    words.insert(words.end(), {"-Xclang", "-mlink-bitcode-file", "-Xclang"});
    words.push_back(scratch.folder() + "/" + name);
  }
  words.insert(words.end(), link.words.begin(), link.words.end());
  const std::string object = scratch.path("code.co"), log = scratch.path("log");
  words.insert(words.end(), {scratch.folder() + "/empty.hip", "-o", object});
  if (!written || hip_run(words, log)) return kRtcLinking;
  link.code = hip_read_file(object);
  return link.code.empty() ? int{kRtcLinking} : int{kSuccess};
}

}  // namespace

extern "C" {

int hiprtcLinkCreate(unsigned count, const int* options, void** values, Link** link) {
  if (!link || (count && (!options || !values))) return kRtcInvalidInput;
  Link made;
  if (const int wrong = read_options(count, options, values, &made)) return wrong;
  *link = handles<Link>().add(std::move(made));
  return kSuccess;
}
int hiprtcLinkAddData(Link* link, int type, void* image, size_t size, const char*, unsigned, int*,
                      void**) {
  if (!image || !size) return kRtcInvalidInput;
  return add_input(link, type, {static_cast<const char*>(image), size});
}
int hiprtcLinkAddFile(Link* link, int type, const char* path, unsigned, int*, void**) {
  if (!is_link(link) || type != kBitcode || !path) return kRtcInvalidInput;
  std::string content = hip_read_file(path);
  return content.empty() ? int{kRtcCreation} : add_input(link, type, std::move(content));
}
// The code object lives as long as the link.
int hiprtcLinkComplete(Link* link, void** code, size_t* size) {
  if (!code || !size || !is_link(link)) return kRtcInvalidInput;
  if (const int wrong = complete(*link)) return wrong;
  *code = &link->code[0];
  *size = link->code.size();
  return kSuccess;
}
int hiprtcLinkDestroy(Link* link) {
  return handles<Link>().remove(link) ? int{kSuccess} : int{kRtcInvalidInput};
}

}  // extern "C"
