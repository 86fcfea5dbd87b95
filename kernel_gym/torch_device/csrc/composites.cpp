// Operators that PyTorch composes of other ones, each of which is one operator for its user.
//
// PyTorch's own kernel computes them. It is taken from the table of a key without a device, where
// each composition stands, and calls the operators of this device. These are not charged, the
// composition is: so a program pays for the operators that a `__torch_dispatch__` sees.

#include "device.h"

#include <ATen/core/enum_tag.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/library.h>

#include <string>
#include <unordered_set>

namespace torch_device {

namespace {

constexpr c10::DispatchKey COMPOSED = c10::DispatchKey::FPGA;

void compose(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(COMPOSED), stack);
}

void composite(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const Part part;
  if (!part.outermost()) return compose(op, stack);
  const auto given = torch::jit::last(*stack, op.schema().arguments().size());
  const c10::SmallVector<c10::IValue, 12> arguments(given.begin(), given.end());
  compose(op, stack);
  charge_operator(op, arguments, torch::jit::last(*stack, op.schema().returns().size()));
}

// Whether a tensor is a stand-in of Python, such as those of a compiler.
bool any_in_python(Values arguments) {
  for (const auto& value : arguments)
    if (value.isTensor() && value.toTensor().key_set().has(c10::DispatchKey::Python)) return true;
  return false;
}

// A function that a GPU runs as one kernel where the owner says so. Otherwise its parts are charged.
void fused(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const bool traced = c10::impl::dispatch_mode_enabled();
  const bool real = charges() && !traced && !any_in_python(arguments);
  const Charge charge = real ? price(op, arguments, nullptr) : Charge{-1, 0, 0};
  if (charge.seconds < 0) return compose(op, stack);
  const Part part;
  compose(op, stack);
  if (part.outermost()) add_charge(op, charge);
}

bool writes_or_returns_tensors(const c10::FunctionSchema& schema) {
  for (const auto& result : schema.returns())
    if (result.type()->kind() == c10::TypeKind::TensorType ||
        result.type()->isSubtypeOf(*c10::ListType::ofTensors()))
      return true;
  return schema.is_mutable();
}

// Compositions that only allocate, name or hand on tensors cost nothing. Forms with given results
// are mostly made of the plain form and a copy, which are charged.
bool is_charged(const c10::OperatorHandle& op) {
  static const std::unordered_set<std::string> free = {
      "aten::empty_like",    "aten::empty_permuted", "aten::new_empty", "aten::new_empty_strided",
      "aten::detach",        "aten::detach_",        "aten::lift",      "aten::lift_fresh",
      "aten::_unsafe_view",  "aten::resize_as_",     "aten::set",       "aten::resize",
      "aten::_resize_output", "aten::_lazy_clone",   "aten::_pin_memory",
  };
  const auto& name = op.operator_name();
  const auto& overload = name.overload_name;
  const bool out = overload.size() >= 3 && overload.compare(overload.size() - 3, 3, "out") == 0;
  return !out && name.name.rfind("aten::", 0) == 0 && free.count(name.name) == 0 &&
         !is_view(op.schema()) && !op.hasTag(at::Tag::inplace_view) &&
         writes_or_returns_tensors(op.schema()) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CUDA) &&
         op.hasComputedKernelForDispatchKey(COMPOSED);
}

}  // namespace

void register_composites() {
  using c10::DispatchKey;
  using torch::CppFunction;
  auto& dispatcher = c10::Dispatcher::singleton();
  // Never destroyed: taking a thousand kernels back would delay the end of every program.
  const auto library_of = [](DispatchKey key) -> torch::Library& {
    return *new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
  };
  auto& aten = library_of(DispatchKey::CUDA);
  for (const auto key : {DispatchKey::CompositeExplicitAutograd,
                         DispatchKey::CompositeExplicitAutogradNonFunctional})
    for (const auto& name : dispatcher.getRegistrationsForDispatchKey(key)) {
      const auto op = dispatcher.findSchema(name);
      if (!op || !is_charged(*op)) continue;
      const auto full = name.overload_name.empty() ? name.name
                                                   : name.name + "." + name.overload_name;
      aten.impl(full.c_str(), CppFunction::makeFromBoxedFunction<&composite>());
    }
  for (const char* name : {"_fused_rms_norm", "_fused_rms_norm_backward"})
    aten.impl(name, CppFunction::makeFromBoxedFunction<&fallback>());
  for (const auto key : {DispatchKey::CUDA, DispatchKey::AutogradCUDA})
    library_of(key).impl("scaled_dot_product_attention",
                         CppFunction::makeFromBoxedFunction<&fused>());
}

}  // namespace torch_device
