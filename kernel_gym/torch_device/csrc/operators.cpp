// The operators that make, view, copy and fill tensors, and the registration of all.

#include "device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/Copy.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <c10/core/DefaultDtype.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace torch_device {

namespace {

using at::IntArrayRef;
using at::Tensor;
template <typename T>
using maybe = std::optional<T>;

at::ScalarType type_or_default(maybe<at::ScalarType> type) {
  return type.value_or(c10::get_default_dtype_as_scalartype());
}

void check_place(maybe<at::Device> device, maybe<bool> pinned) {
  TORCH_CHECK(!device || device->index() <= 0, "CUDA error: invalid device ordinal: found ",
              *device, ", expected cuda:0, the only simulated GPU");
  TORCH_CHECK(!pinned.value_or(false), "Only dense CPU tensors can be pinned");
}

Tensor empty(IntArrayRef sizes, maybe<at::ScalarType> type, maybe<at::Layout>,
             maybe<at::Device> device, maybe<bool> pinned, maybe<at::MemoryFormat> format) {
  check_place(device, pinned);
  return at::detail::empty_generic(sizes, allocator(), c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   type_or_default(type), format);
}

Tensor empty_with_strides(IntArrayRef sizes, IntArrayRef strides, maybe<at::ScalarType> type,
                          maybe<at::Layout>, maybe<at::Device> device, maybe<bool> pinned) {
  check_place(device, pinned);
  return empty_strided(sizes, strides, type_or_default(type));
}

Tensor as_strided(const Tensor& self, IntArrayRef sizes, IntArrayRef strides,
                  maybe<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, offset);
}

Tensor view(const Tensor& self, IntArrayRef sizes) { return at::native::view(self, sizes); }

Tensor reshape_alias(const Tensor& self, IntArrayRef sizes, IntArrayRef strides) {
  return at::native::_reshape_alias(self, sizes, strides);
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}

std::string type_name(at::ScalarType type) { return std::string(c10::getDtypeNames(type).first); }

struct Described {
  std::string type;
  std::vector<int64_t> sizes, strides;
  Piece piece;
  explicit Described(const Tensor& tensor)
      : type(type_name(tensor.scalar_type())),
        sizes(tensor.sizes().vec()),
        strides(tensor.strides().vec()),
        piece{reinterpret_cast<uint64_t>(tensor.const_data_ptr()), type.c_str(), tensor.dim(),
              sizes.data(), strides.data()} {}
};

void ask_copy(const Tensor& source, const Tensor& target) {
  char error[MOST_TEXT] = "";
  const Described from(source), to(target);
  check(owner().copy(&from.piece, &to.piece, error), error);
}

void ask_upload(const Tensor& source, const Tensor& target) {
  const Tensor packed = source.expand(target.sizes()).to(target.scalar_type()).contiguous();
  if (!packed.numel()) return;
  const bool direct = target.is_contiguous();
  const Tensor place =
      direct ? target
             : empty_strided(packed.sizes(), packed.strides(), packed.scalar_type());
  char error[MOST_TEXT] = "";
  check(owner().upload(reinterpret_cast<uint64_t>(place.const_data_ptr()), packed.const_data_ptr(),
                       packed.nbytes(), error),
        error);
  if (!direct) ask_copy(place, target);
}

void copy_by_owner(const Tensor& self, const Tensor& source) {
  if (!self.is_cuda()) refuse_read("aten.copy_.default");
  if (!source.is_cuda()) return ask_upload(source, self);
  if (self.scalar_type() != source.scalar_type() || self.is_conj() != source.is_conj() ||
      self.is_neg() != source.is_neg()) {
    const std::string from = "torch." + type_name(source.scalar_type());
    const std::string to = "torch." + type_name(self.scalar_type());
    refuse("conversion from " + from + " to " + to,
           "converting " + from + " to " + to + " with torch is refused: convert in your kernel");
  }
  ask_copy(source.expand(self.sizes()), self);
}

c10::OperatorHandle operator_of(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

Tensor& copy_(Tensor& self, const Tensor& source, bool asynchronous) {
  static const c10::OperatorHandle op = operator_of("aten::copy_", "");
  if (policy() == ASK) {
    copy_by_owner(self, source);
    return self;
  }
  check_not_capturing("aten.copy_.default");
  on_host(self).copy_(on_host(source));
  if (!self.is_cuda() || !source.is_cuda())
    charge_transfer(self.numel() * self.element_size());
  else if (const Part part; part.outermost())
    charge_operator(op, {self, source, asynchronous}, {self});
  return self;
}

// PyTorch's own composite copy ends here, where a program asks for it past the device's operator.
void copy_by_iterator(at::TensorIterator& iterator, bool) {
  Tensor target = iterator.tensor(0);
  copy_(target, iterator.tensor(1), false);
}

Tensor& fill_scalar(Tensor& self, const at::Scalar& value) {
  static const c10::OperatorHandle op = operator_of("aten::fill_", "Scalar");
  if (policy() == COMPUTE) {
    check_not_capturing("aten.fill_.Scalar");
    on_host(self).fill_(value);
    if (const Part part; part.outermost()) charge_operator(op, {self, value}, {self});
    return self;
  }
  TORCH_CHECK(!value.isComplex(), "fill_ takes a real number here");
  const int kind = value.isBoolean() ? 2 : value.isFloatingPoint() ? 1 : 0;
  char error[MOST_TEXT] = "";
  const Described target(self);
  check(owner().fill(&target.piece, kind == 1 ? value.toDouble() : 0,
                     kind == 1 ? 0 : value.toLong(), kind, error),
        error);
  return self;
}

Tensor& fill_tensor(Tensor& self, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
              value.dim(), " dimensions.");
  if (value.is_cuda() && policy() == ASK)
    TORCH_CHECK(false, "fill_ takes a number here, not a tensor");
  return fill_scalar(self, on_host(value).item());
}

Tensor& zero_(Tensor& self) { return fill_scalar(self, 0); }

// Gives a storage at least so many bytes, and keeps what it holds.
void grow(const at::Storage& source, size_t bytes) {
  auto* storage = source.unsafeGetStorageImpl();
  if (bytes <= storage->nbytes()) return;
  const auto held = static_cast<int64_t>(storage->nbytes());
  const Tensor larger = empty_strided({static_cast<int64_t>(bytes)}, {1}, at::kByte);
  if (held > 0) {
    Tensor before = empty_strided({0}, {1}, at::kByte);
    before.unsafeGetTensorImpl()->set_storage_keep_dtype(source);
    const int64_t one = 1;
    before.unsafeGetTensorImpl()->set_sizes_and_strides(IntArrayRef(held), IntArrayRef(one), 0);
    Tensor start = at::native::as_strided_tensorimpl(larger, {held}, {1}, 0);
    copy_(start, before, false);
  }
  storage->set_data_ptr_noswap(
      larger.storage().unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr()));
  storage->set_nbytes(bytes);
}

Tensor& set_storage(Tensor& self, at::Storage source, int64_t offset, IntArrayRef sizes,
                    IntArrayRef strides) {
  TORCH_CHECK(source.device().is_cuda(), "set_ of a tensor on cuda:0 to a storage on ",
              source.device());
  auto* impl = self.unsafeGetTensorImpl();
  std::vector<int64_t> steps = strides.vec();
  if (strides.size() != sizes.size()) {
    steps.assign(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;)
      steps[i - 1] = steps[i] * std::max<int64_t>(sizes[i], 1);
  }
  if (policy() == COMPUTE)
    grow(source, at::detail::computeStorageNbytes(sizes, steps, self.dtype().itemsize(), offset));
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_sizes_and_strides(sizes, steps, offset);
  return self;
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(),
                     source.strides());
}

Tensor& set_whole_storage(Tensor& self, at::Storage source) {
  const int64_t count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(source), 0, {count}, {1});
}

Tensor& set_nothing(Tensor& self) {
  return set_tensor(self, empty_strided({0}, {1}, self.scalar_type()));
}

const Tensor& resize_(const Tensor& self, IntArrayRef sizes, maybe<at::MemoryFormat> format) {
  auto* impl = self.unsafeGetTensorImpl();
  const Tensor wanted = at::empty(
      sizes, at::TensorOptions().dtype(self.dtype()).device(c10::kMeta).memory_format(format));
  grow(self.storage(), wanted.storage().nbytes() + self.storage_offset() * self.element_size());
  impl->set_sizes_and_strides(wanted.sizes(), wanted.strides(), self.storage_offset());
  return self;
}

// Makes a storage smaller or larger, as `untyped_storage().resize_` does.
void resize_storage(const Tensor& self, c10::SymInt size) {
  if (policy() == ASK) refuse_operator("inductor.resize_storage_bytes_.default");
  const int64_t bytes = size.expect_int();
  TORCH_CHECK(bytes >= 0, "a storage cannot have ", bytes, " bytes, expected 0 or more");
  auto* storage = self.storage().unsafeGetStorageImpl();
  const size_t kept = std::min<size_t>(bytes, storage->nbytes());
  c10::DataPtr fresh = allocator()->allocate(bytes);
  if (kept) std::memcpy(fresh.get(), storage->data(), kept);
  storage->set_data_ptr_noswap(std::move(fresh));
  storage->set_nbytes(bytes);
}

// A fused attention for CUDA would need kernels that only CUDA has: 0 is the one by matrix products.
int64_t choose_attention(const Tensor&, const Tensor&, const Tensor&, const maybe<Tensor>&, double,
                         bool, maybe<double>, bool) {
  return 0;
}

// Libraries of GPU vendors for this loss are not there: PyTorch's own form computes it.
bool has_ctc_library(const Tensor&, const Tensor&, IntArrayRef, IntArrayRef, int64_t) {
  return false;
}

bool has_ctc_library_of_tensors(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                int64_t) {
  return false;
}

void record_stream(Tensor&, at::Stream) {}

}  // namespace

// Operators whose composition would choose kernels of CUDA or keep statistics in small floats.
static const char* const WHOLE[] = {"convolution", "convolution_backward", "native_layer_norm",
                                    "native_group_norm"};

// Replaces every kernel of a build of PyTorch for GPUs: this device stands for its GPU.
static void replace_kernels() {
  using c10::DispatchKey;
  static torch::Library aten(torch::Library::IMPL, "aten", DispatchKey::CUDA, __FILE__, __LINE__);
  for (const auto& op : c10::Dispatcher::singleton().getRegistrationsForDispatchKey(
           DispatchKey::CUDA)) {
    if (op.name.rfind("aten::", 0) != 0) continue;
    const auto name = op.overload_name.empty() ? op.name : op.name + "." + op.overload_name;
    aten.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&fallback>());
  }
}

struct Silence final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

void register_operators() {
  using c10::DispatchKey;
  using torch::Library;
  Silence silence;  // PyTorch warns of kernels that are replaced
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  replace_kernels();
  static Library aten(Library::IMPL, "aten", DispatchKey::CUDA, __FILE__, __LINE__);
  aten.impl("empty.memory_format", empty);
  aten.impl("empty_strided", empty_with_strides);
  aten.impl("as_strided", as_strided);
  aten.impl("view", view);
  aten.impl("_reshape_alias", reshape_alias);
  aten.impl("unfold", unfold);
  aten.impl("copy_", copy_);
  at::native::copy_stub.set_cuda_dispatch_ptr(copy_by_iterator);
  aten.impl("fill_.Scalar", fill_scalar);
  aten.impl("fill_.Tensor", fill_tensor);
  aten.impl("zero_", zero_);
  aten.impl("set_.source_Storage_storage_offset", set_storage);
  aten.impl("set_.source_Storage", set_whole_storage);
  aten.impl("set_.source_Tensor", set_tensor);
  aten.impl("set_", set_nothing);
  aten.impl("resize_", resize_);
  aten.impl("record_stream", record_stream);
  aten.impl("_fused_sdp_choice", choose_attention);
  for (const std::string name : {"_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"}) {
    aten.impl(name.c_str(), has_ctc_library);
    aten.impl((name + ".Tensor").c_str(), has_ctc_library_of_tensors);
  }
  static Library inductor(Library::IMPL, "inductor", DispatchKey::CUDA, __FILE__, __LINE__);
  inductor.impl("resize_storage_bytes_", resize_storage);
  for (const char* name : WHOLE)
    aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
  static Library others(Library::IMPL, "_", DispatchKey::CUDA, __FILE__, __LINE__);
  others.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace torch_device
