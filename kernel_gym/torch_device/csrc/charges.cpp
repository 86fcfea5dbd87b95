// The modelled time of operators: a launch, and the slower of memory and arithmetic.

#include "device.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace torch_device {

namespace {

struct Charged {
  const char* name;
  uint64_t calls, bytes;
  double flops, seconds;
};

std::mutex g_mutex;
Rates g_rates{};
double g_matrix_rates[256] = {};  // FLOP/s by the number of the dtype, 0 without matrix units
double g_seconds = 0;
uint64_t g_operators = 0;
std::unordered_map<const void*, Charged> g_charged;

void add(const char* name, const void* key, uint64_t bytes, double flops, double seconds) {
  std::lock_guard<std::mutex> lock(g_mutex);
  g_seconds += seconds;
  ++g_operators;
  auto& entry = g_charged.try_emplace(key, Charged{name, 0, 0, 0, 0}).first->second;
  entry.calls += 1;
  entry.bytes += bytes;
  entry.flops += flops;
  entry.seconds += seconds;
}

}  // namespace

void charge(const char* name, const void* key, uint64_t bytes, double flops, at::ScalarType type) {
  if (g_rates.bytes <= 0) return;
  const double matrix = g_matrix_rates[static_cast<uint8_t>(type)];
  const double computing = flops / (matrix > 0 ? matrix : g_rates.vector);
  const double moving = static_cast<double>(bytes) / g_rates.bytes;
  add(name, key, bytes, flops, g_rates.launch + std::max(computing, moving));
}

void charge_transfer(uint64_t bytes) {
  static const char key = 0;
  if (g_rates.bytes <= 0) return;
  const double moving = static_cast<double>(bytes) / g_rates.link;
  add("host transfer", &key, bytes, 0, g_rates.latency + moving);
}

}  // namespace torch_device

extern "C" {

__attribute__((visibility("default"))) void torch_device_set_rates(
    const torch_device::Rates* rates) {
  torch_device::g_rates = *rates;
}

// Sets the FLOP/s of the matrix units for a dtype by its name, such as "float16".
__attribute__((visibility("default"))) void torch_device_set_matrix_rate(const char* type,
                                                                          double rate) {
  for (int i = 0; i < static_cast<int>(at::ScalarType::Undefined); ++i)
    if (c10::getDtypeNames(static_cast<at::ScalarType>(i)).first == type)
      torch_device::g_matrix_rates[i] = rate;
}

// Modelled seconds of all operators and transfers so far.
__attribute__((visibility("default"))) double torch_device_seconds() {
  std::lock_guard<std::mutex> lock(torch_device::g_mutex);
  return torch_device::g_seconds;
}

// Writes one line for each operator, "name calls bytes flops seconds", and returns its length.
__attribute__((visibility("default"))) uint64_t torch_device_operators(char* text, uint64_t size) {
  std::lock_guard<std::mutex> lock(torch_device::g_mutex);
  std::string lines;
  for (const auto& [key, entry] : torch_device::g_charged) {
    char line[512];
    std::snprintf(line, sizeof line, "%s\t%llu\t%llu\t%.17g\t%.17g\n", entry.name,
                  static_cast<unsigned long long>(entry.calls),
                  static_cast<unsigned long long>(entry.bytes), entry.flops, entry.seconds);
    lines += line;
  }
  if (text != nullptr && lines.size() < size) std::memcpy(text, lines.c_str(), lines.size() + 1);
  return lines.size();
}
}
