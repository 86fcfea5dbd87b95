// A `cuda` device for PyTorch whose memory and policy belong to its owner, in Python.

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Allocator.h>

#include <cstdint>
#include <string>

namespace torch_device {

constexpr int MOST_TEXT = 4096;  // bytes of an error text, with its final zero

enum Status { DONE = 0, FAILED = 1, OUT_OF_MEMORY = 2 };

enum Policy {
  COMPUTE = 0,  // operators are computed by the CPU kernels of PyTorch in the device's memory
  ASK = 1,      // the owner fills and copies, every other operator is refused
};

// A strided tensor in device memory.
struct Piece {
  uint64_t address;        // of its first element
  const char* type;        // name of the dtype, such as "float32"
  int64_t dimensions;
  const int64_t* sizes;
  const int64_t* strides;  // in elements
};

// The modelled cost of one call of an operator. Negative seconds: its parts are charged.
struct Charge {
  double seconds, bytes, flops;
};

// What the owner provides. Each call returns a Status and writes a text when it is not DONE.
struct Owner {
  int (*allocate)(uint64_t bytes, uint64_t* address, char* error);
  int (*copy)(const Piece* source, const Piece* target, char* error);
  int (*upload)(uint64_t address, const void* data, uint64_t bytes, char* error);
  int (*fill)(const Piece* target, double value, int64_t whole, int kind, char* error);
  void (*refuse)(const char* name);
  int (*price)(const char* text, Charge* charge, char* error);  // null: operators cost nothing
};

bool installed();
Policy policy();
const Owner& owner();

// Throws if a graph is being captured: its replay would not run PyTorch's operators again.
void check_not_capturing(const char* name);

// Throws PyTorch's exception for a status of the owner.
void check(int status, const char* error);
[[noreturn]] void refuse(const std::string& name, const std::string& text);
[[noreturn]] void refuse_operator(const std::string& name);
[[noreturn]] void refuse_read(const std::string& name);

c10::Allocator* allocator();
c10::Allocator* pinned_allocator();
bool is_pinned(const void* address);
at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type);

// Returns a CPU tensor over the memory of a device tensor.
at::Tensor on_host(const at::Tensor& tensor);

at::Generator host_generator(const at::Generator& generator);
const at::Generator& default_generator();
void register_device();
void register_operators();
void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// Computes an operator on CPU tensors over the device's memory, which it takes from the stack.
using Computation = void (*)(torch::jit::Stack* stack);

// Returns the computation of an operator for which PyTorch has no kernel for the CPU, or null.
Computation own_computation(const std::string& name);
void rms_norm_gradient(torch::jit::Stack* stack);

// The name by which Python knows an operator, such as "aten.add.Tensor".
std::string python_name(const c10::OperatorName& name);

// Whether an operator returns a view and writes nothing.
bool is_view(const c10::FunctionSchema& schema);

// Makes operators that PyTorch composes of other ones count as one.
void register_composites();

using Values = at::ArrayRef<c10::IValue>;

// A call of an operator, while it exists. Only the outermost one is charged, as one that a program
// has called.
class Part {
 public:
  Part();
  ~Part();
  Part(const Part&) = delete;
  bool outermost() const { return outermost_; }

 private:
  bool outermost_;
};

// Whether operators are charged in this process.
inline bool charges() { return policy() == COMPUTE && owner().price != nullptr; }

// Returns the cost of a call. Without results the owner infers them.
Charge price(const c10::OperatorHandle& op, Values arguments, const Values* results);
void add_charge(const c10::OperatorHandle& op, const Charge& charge);

// Charges a call whose results are on the device, or that has none.
void charge_operator(const c10::OperatorHandle& op, Values arguments, Values results);
void charge_transfer(uint64_t bytes);

// What decides the cost of a call, as bytes and as JSON.
void write_key(std::string& key, const c10::OperatorHandle& op, Values arguments,
               const Values* results);
std::string written_text(const c10::OperatorHandle& op, Values arguments, const Values* results);

}  // namespace torch_device
