// One kernel for every operator without a direct one: it refuses, or lets the CPU kernel compute.
//
// The CPU kernel gets CPU tensors over the memory of the device's tensors. Whatever it does to them
// (values, sizes, strides, storage) is then true of the device's tensors too, and its results move
// to the device.

#include "device.h"

#include <ATen/core/Generator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace torch_device {

namespace {

using c10::IValue;
using c10::Storage;

// Whether an operator is the form of another one whose results are given: "add.out" of "add.Tensor".
bool is_out_form(const c10::FunctionSchema& out, const c10::FunctionSchema& plain) {
  const auto& given = out.arguments();
  const auto& taken = plain.arguments();
  if (given.size() != taken.size() + plain.returns().size()) return false;
  for (size_t i = 0; i < taken.size(); ++i)
    if (given[i].name() != taken[i].name() || *given[i].type() != *taken[i].type()) return false;
  return true;
}

// The operator that a program has called. PyTorch calls the form with given results for many.
c10::OperatorName called_name(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  const auto& overload = name.overload_name;
  if (overload.size() < 3 || overload.compare(overload.size() - 3, 3, "out") != 0) return name;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& other : dispatcher.getRegistrationsForDispatchKey(
           c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) {
    if (other.name != name.name || other.overload_name == overload) continue;
    const auto found = dispatcher.findSchema(other);
    if (found && is_out_form(op.schema(), found->schema())) return other;
  }
  return name;
}

Storage borrow(const Storage& storage) {
  c10::DataPtr data(storage.mutable_data(), new Storage(storage),
                    [](void* held) { delete static_cast<Storage*>(held); },
                    c10::Device(c10::kCPU));
  return Storage(Storage::use_byte_size_t(), storage.nbytes(), std::move(data),
                 c10::GetCPUAllocator(), /*resizable=*/true);
}

// A storage that was made smaller may no longer hold a tensor; reading it there would be a crash.
void check_held(const at::Tensor& tensor) {
  if (!tensor.numel()) return;
  int64_t last = tensor.storage_offset();
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  const auto needed = static_cast<uint64_t>(last + 1) * tensor.element_size();
  TORCH_CHECK(needed <= tensor.storage().nbytes(), "a tensor of sizes ", tensor.sizes(),
              " needs ", needed, " bytes of its storage, which has ", tensor.storage().nbytes(),
              ": it was resized, for example by untyped_storage().resize_(0)");
}

at::Tensor over(const Storage& storage, const at::Tensor& like, c10::DispatchKey key) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(
      Storage(storage), c10::DispatchKeySet(key), like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(
      like.sizes(), like.strides(), like.storage_offset());
  if (like.is_conj()) made._set_conj(true);
  if (like.is_neg()) made._set_neg(true);
  return made;
}

// The tensors of one call: each device tensor with its stand-in on the CPU.
class Call {
 public:
  explicit Call(bool is_view) : is_view_(is_view) {}

  at::Tensor to_host(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (!tensor.is_cuda()) {
      if (tensor.dim() > 0) foreign_ = true;
      return tensor;
    }
    for (auto& pair : tensors_)
      if (pair.device.is_same(tensor)) return pair.host;
    if (!is_view_) check_held(tensor);
    tensors_.push_back({tensor, over(host_storage(tensor.storage()), tensor,
                                     c10::DispatchKey::CPU)});
    return tensors_.back().host;
  }

  IValue to_host(const IValue& value) {
    if (value.isTensor()) return to_host(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(to_host(tensor));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList())
        list.push_back(tensor ? std::optional<at::Tensor>(to_host(*tensor)) : std::nullopt);
      return list;
    }
    if (value.isDevice() && value.toDevice().is_cuda()) return c10::Device(c10::kCPU);
    if (value.isGenerator()) return host_generator(value.toGenerator());
    if (value.isStorage() && value.toStorage().device().is_cuda())
      return host_storage(value.toStorage());
    return value;
  }

  at::Tensor to_device(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_cpu()) return tensor;
    for (auto& pair : tensors_)
      if (pair.host.is_same(tensor)) return pair.device;
    TORCH_CHECK_NOT_IMPLEMENTED(tensor.has_storage(), "sparse and nested tensors are not available "
                                "on the simulated GPU: use a dense tensor");
    const auto* storage = device_storage(tensor.storage());
    if (storage != nullptr) return over(*storage, tensor, c10::DispatchKey::CUDA);
    auto made = empty_strided(tensor.sizes(), tensor.strides(), tensor.scalar_type());
    const size_t size = made.storage().nbytes();
    if (size > 0) {
      const auto* from = static_cast<const char*>(tensor.storage().data()) +
                         tensor.storage_offset() * tensor.element_size();
      std::memcpy(made.mutable_data_ptr(), from, size);
    }
    if (tensor.is_conj()) made._set_conj(true);
    if (tensor.is_neg()) made._set_neg(true);
    return made;
  }

  IValue to_device(const IValue& value) {
    if (value.isTensor()) return to_device(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(to_device(tensor));
    return list;
  }

  // Repeats on the device's tensors what the kernel did to the shapes and storages of the stand-ins.
  void restore() {
    for (auto& pair : storages_) {
      if (pair.host.data() == pair.data && pair.host.nbytes() == pair.bytes) continue;
      const size_t size = pair.host.nbytes();
      c10::DataPtr fresh = allocator()->allocate(size);
      if (size > 0) std::memcpy(fresh.get(), pair.host.data(), size);
      pair.device.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(fresh));
      pair.device.unsafeGetStorageImpl()->set_nbytes(size);
    }
    for (auto& pair : tensors_) {
      auto* impl = pair.device.unsafeGetTensorImpl();
      const auto* storage = device_storage(pair.host.storage());
      if (storage != nullptr && !pair.device.storage().is_alias_of(*storage))
        impl->set_storage_keep_dtype(*storage);
      if (pair.host.sizes() != pair.device.sizes() || pair.host.strides() != pair.device.strides() ||
          pair.host.storage_offset() != pair.device.storage_offset())
        impl->set_sizes_and_strides(pair.host.sizes(), pair.host.strides(),
                                    pair.host.storage_offset());
    }
  }

  bool on_two_devices() const { return foreign_ && !tensors_.empty(); }

  // The type of the first argument on the device, or float.
  at::ScalarType type() const {
    return tensors_.empty() ? at::kFloat : tensors_.front().device.scalar_type();
  }

 private:
  struct Tensors {
    at::Tensor device, host;
  };
  struct Storages {
    Storage device, host;
    const void* data;
    size_t bytes;
  };

  Storage host_storage(const Storage& storage) {
    for (auto& pair : storages_)
      if (pair.device.is_alias_of(storage)) return pair.host;
    Storage host = borrow(storage);
    storages_.push_back({storage, host, host.data(), host.nbytes()});
    return host;
  }

  const Storage* device_storage(const Storage& host) const {
    for (auto& pair : storages_)
      if (pair.host.unsafeGetStorageImpl() == host.unsafeGetStorageImpl()) return &pair.device;
    return nullptr;
  }

  c10::SmallVector<Tensors, 6> tensors_;
  c10::SmallVector<Storages, 6> storages_;
  bool is_view_, foreign_ = false;
};

// What the dispatcher table of an operator says, computed once.
struct Facts {
  std::string name;
  bool view = false;         // returns a view and writes nothing
  bool known = false;        // there is a CPU kernel that may stand for the GPU's, or `own`
  Computation own = nullptr; // computes it where PyTorch has no kernel for the CPU
  bool mixes = false;        // GPUs accept CPU tensors beside theirs
  bool is_norm = false;      // adds up many products: wider here, as compute_wider says
  bool adds_rows = false;    // the gradient of a logarithm of softmax
  bool is_softmax = false;   // may convert half values to float, which the CPU's kernels refuse
  bool is_softmax_gradient = false;
  int generator = -1;        // its generator among the arguments
};

Facts read_facts(const c10::OperatorHandle& op) {
  static const std::unordered_set<std::string> mixing = {
      "aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_",
      "aten::_unsafe_index", "aten::_unsafe_index_put", "aten::_ctc_loss", "aten::ctc_loss",
      "aten::_foreach_copy_", "aten::_to_copy", "aten::_copy_from", "aten::_amp_update_scale_",
  };
  Facts facts;
  const std::string& name = op.operator_name().name;
  facts.name = python_name(called_name(op));
  facts.view = is_view(op.schema());
  facts.own = own_computation(name);
  facts.known = name.rfind("aten::", 0) == 0 &&
                (facts.own != nullptr || op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU));
  facts.mixes = mixing.count(name) > 0;
  facts.is_norm = name.find("native_layer_norm") != std::string::npos ||
                  name.find("native_group_norm") != std::string::npos;
  facts.adds_rows = name == "aten::_log_softmax_backward_data" &&
                    op.operator_name().overload_name == "out";
  facts.is_softmax = name == "aten::_softmax" || name == "aten::_log_softmax";
  facts.is_softmax_gradient = name == "aten::_softmax_backward_data" &&
                              op.operator_name().overload_name == "out";
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name() == "generator") facts.generator = static_cast<int>(i);
  return facts;
}

const Facts& facts_of(const c10::OperatorHandle& op) {
  static std::mutex mutex;
  static std::unordered_map<const void*, Facts> known;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = known.find(&op.schema());
  if (found == known.end()) found = known.emplace(&op.schema(), read_facts(op)).first;
  return found->second;
}

// Computes a norm or its gradients in a wider type: half types in float, as GPUs do, and float in
// double. The CPU's kernels add up one value after the other in the type of the arguments, which
// loses digits; GPUs add up in a tree.
void compute_wider(const c10::OperatorHandle& op, Call& call, torch::jit::Stack* stack) {
  const size_t base = stack->size() - op.schema().arguments().size();
  const at::ScalarType type = call.type();
  const at::ScalarType wide = type == at::kFloat ? at::kDouble : at::kFloat;
  for (size_t i = base; i < stack->size(); ++i) {
    auto& value = (*stack)[i];
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().is_floating_point())
      value = value.toTensor().to(wide);
  }
  at::AutoDispatchBelowADInplaceOrView below;
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  const bool backward = op.operator_name().name.find("backward") != std::string::npos;
  const size_t first = stack->size() - op.schema().returns().size();
  for (size_t i = first; i < stack->size(); ++i) {
    auto& value = (*stack)[i];
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor made = value.toTensor();
    value = call.to_device(made.to(backward || i == first ? type : at::kFloat));
  }
}

// The gradient of a logarithm of softmax, with sums in a tree, as GPUs have them: the CPU's kernel
// adds up a row one value after the other, which loses digits where they are many and equal.
void log_softmax_backward(const Call& call, torch::jit::Stack* stack) {
  at::AutoDispatchBelowADInplaceOrView below;
  const at::Tensor out = torch::jit::pop(*stack).toTensor();
  const auto type = static_cast<at::ScalarType>(torch::jit::pop(*stack).toInt());
  const int64_t dim = torch::jit::pop(*stack).toInt();
  const at::Tensor output = torch::jit::pop(*stack).toTensor();
  const at::Tensor grad = torch::jit::pop(*stack).toTensor();
  const at::ScalarType wide = call.type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor sums = grad.sum({dim}, /*keepdim=*/true, wide);
  const at::Tensor made = grad.sub(output.to(wide).exp().mul_(sums));
  TORCH_CHECK(out.scalar_type() == type, "found ", out.scalar_type(), ", expected ", type);
  out.resize_(made.sizes()).copy_(made);
  torch::jit::push(*stack, out);
}

// The gradient of a softmax that has converted half values to float: float in, half out.
void softmax_backward(torch::jit::Stack* stack) {
  at::AutoDispatchBelowADInplaceOrView below;
  const at::Tensor out = torch::jit::pop(*stack).toTensor();
  torch::jit::pop(*stack);  // the type of the input, which is that of `out`
  const int64_t dim = torch::jit::pop(*stack).toInt();
  const at::Tensor output = torch::jit::pop(*stack).toTensor();
  const at::Tensor grad = torch::jit::pop(*stack).toTensor();
  const at::Tensor sums = grad.mul(output).sum({dim}, /*keepdim=*/true);
  out.resize_(output.sizes()).copy_(output.mul(grad.sub(sums)));
  torch::jit::push(*stack, out);
}

void compute(const c10::OperatorHandle& op, const Facts& facts, torch::jit::Stack* stack) {
  if (!facts.view) check_not_capturing(facts.name.c_str());
  const size_t count = op.schema().arguments().size();
  const size_t base = stack->size() - count;
  Call call(facts.view);
  for (size_t i = base; i < stack->size(); ++i) (*stack)[i] = call.to_host((*stack)[i]);
  TORCH_CHECK(!call.on_two_devices() || facts.mixes,
              "Expected all tensors to be on the same device, but found at least two devices, "
              "cuda:0 and cpu! (when calling ", facts.name, ")");
  if (facts.generator >= 0) {
    auto& generator = (*stack)[base + facts.generator];
    if (generator.isNone()) generator = host_generator(default_generator());
  }
  if (facts.is_norm && call.type() != at::kDouble) return compute_wider(op, call, stack);
  if (facts.is_softmax && (*stack)[base + 2].toBool()) {
    (*stack)[base] = (*stack)[base].toTensor().to(at::kFloat);
    (*stack)[base + 2] = false;
  }
  const bool converted = facts.is_softmax_gradient && (*stack)[base].toTensor().scalar_type() !=
                                                          stack->back().toTensor().scalar_type();
  if (facts.own != nullptr) {
    at::AutoDispatchBelowADInplaceOrView below;
    facts.own(stack);
  } else if (facts.adds_rows) {
    log_softmax_backward(call, stack);
  } else if (converted) {
    softmax_backward(stack);
  } else {
    at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  }
  call.restore();
  const size_t results = op.schema().returns().size();
  for (size_t i = stack->size() - results; i < stack->size(); ++i)
    (*stack)[i] = call.to_device((*stack)[i]);
}

}  // namespace

at::Tensor on_host(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return tensor;
  check_held(tensor);
  return over(borrow(tensor.storage()), tensor, c10::DispatchKey::CPU);
}

bool is_view(const c10::FunctionSchema& schema) {
  bool aliases = false;
  for (const auto& argument : schema.arguments()) {
    if (argument.alias_info() == nullptr) continue;
    if (argument.alias_info()->isWrite()) return false;
    aliases = true;
  }
  return aliases;
}

std::string python_name(const c10::OperatorName& operator_name) {
  std::string name = operator_name.name;
  const auto colons = name.find("::");
  if (colons != std::string::npos) name.replace(colons, 2, ".");
  const auto& overload = operator_name.overload_name;
  return name + "." + (overload.empty() ? "default" : overload);
}

void refuse_operator(const std::string& name) {
  refuse(name, "torch operator " + name +
                   " is refused on device tensors: only allocation and view operations are "
                   "allowed here; do the work in your kernel");
}

void refuse_read(const std::string& name) {
  refuse(name + " (host reads device memory)",
         "reading device memory on the host is refused: keep the work in your kernel");
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const Facts& facts = facts_of(op);
  if (policy() == ASK && !facts.view) {
    if (op.operator_name().name == "aten::_local_scalar_dense") refuse_read(facts.name);
    refuse_operator(facts.name);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      facts.known, facts.name,
      " is not available on the simulated GPU: its operators are computed by the CPU kernels of "
      "PyTorch, and this one has none. Use other operators, or a kernel of your own.");
  if (facts.view) return compute(op, facts, stack);
  const Part part;
  if (!part.outermost()) return compute(op, facts, stack);
  const auto given = torch::jit::last(*stack, op.schema().arguments().size());
  const c10::SmallVector<IValue, 12> arguments(given.begin(), given.end());
  compute(op, facts, stack);
  charge_operator(op, arguments, torch::jit::last(*stack, op.schema().returns().size()));
}

}  // namespace torch_device
