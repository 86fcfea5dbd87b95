// The modelled time of operators and transfers. The owner prices a call once; its price is kept.

#include "device.h"

#include <cstdio>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace torch_device {

namespace {

constexpr size_t MOST_PRICES = 1 << 16;  // a program whose shapes never repeat starts again

struct Total {
  std::string name;
  uint64_t calls;
  Charge charge;
};

std::mutex g_mutex;
double g_link = 0, g_latency = 0;  // of a transfer: bytes per second, and seconds besides
double g_seconds = 0;
std::unordered_map<const void*, Total> g_totals;
std::unordered_map<std::string, Charge> g_prices;
thread_local int g_depth = 0;

template <class Name>
void add(const void* key, const Charge& charge, Name name) {
  std::lock_guard<std::mutex> lock(g_mutex);
  g_seconds += charge.seconds;
  auto found = g_totals.find(key);
  if (found == g_totals.end()) found = g_totals.emplace(key, Total{name(), 0, {}}).first;
  auto& total = found->second;
  total.calls += 1;
  total.charge.seconds += charge.seconds;
  total.charge.bytes += charge.bytes;
  total.charge.flops += charge.flops;
}

Charge ask(const std::string& text) {
  char error[MOST_TEXT] = "";
  Charge charge{};
  check(owner().price(text.c_str(), &charge, error), error);
  return charge;
}

bool is_tensor(const c10::IValue& value) { return value.isTensor() && value.toTensor().defined(); }

// Whether a call only moves tensors between host and device.
bool is_transfer(Values arguments, Values results) {
  for (const auto& result : results)
    if (is_tensor(result) && !result.toTensor().is_cuda()) return true;
  bool from_host = false;
  for (const auto& argument : arguments) {
    if (!is_tensor(argument)) continue;
    if (argument.toTensor().is_cuda()) return false;
    from_host = true;
  }
  return from_host;
}

}  // namespace

Part::Part() : outermost_(g_depth++ == 0) {}
Part::~Part() { --g_depth; }

Charge price(const c10::OperatorHandle& op, Values arguments, const Values* results) {
  thread_local std::string key;
  write_key(key, op, arguments, results);
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    const auto found = g_prices.find(key);
    if (found != g_prices.end()) return found->second;
  }
  const std::string kept = key;  // the owner may run operators
  const Charge charge = ask(written_text(op, arguments, results));
  std::lock_guard<std::mutex> lock(g_mutex);
  if (g_prices.size() >= MOST_PRICES) g_prices.clear();
  g_prices.emplace(kept, charge);
  return charge;
}

void add_charge(const c10::OperatorHandle& op, const Charge& charge) {
  add(&op.schema(), charge, [&] { return python_name(op.operator_name()); });
}

void charge_operator(const c10::OperatorHandle& op, Values arguments, Values results) {
  if (!charges() || is_transfer(arguments, results)) return;  // transfers are charged as such
  add_charge(op, price(op, arguments, &results));
}

void charge_transfer(uint64_t bytes) {
  static const char key = 0;
  if (!charges() || g_link <= 0) return;
  const auto moved = static_cast<double>(bytes);
  add(&key, {g_latency + moved / g_link, moved, 0}, [] { return std::string("host transfer"); });
}

}  // namespace torch_device

extern "C" {

// Sets the model of transfers between host and device: bytes per second, and seconds besides.
__attribute__((visibility("default"))) void torch_device_set_link(double rate, double latency) {
  torch_device::g_link = rate;
  torch_device::g_latency = latency;
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
  for (const auto& [key, total] : torch_device::g_totals) {
    char line[512];
    std::snprintf(line, sizeof line, "%s\t%llu\t%.17g\t%.17g\t%.17g\n", total.name.c_str(),
                  static_cast<unsigned long long>(total.calls), total.charge.bytes,
                  total.charge.flops, total.charge.seconds);
    lines += line;
  }
  if (text != nullptr && lines.size() < size) std::memcpy(text, lines.c_str(), lines.size() + 1);
  return lines.size();
}
}
