// The gradients of RMS normalisation. PyTorch has a fused kernel of them for GPUs and none for the
// CPU. They are computed in float where the tensors are half, as GPUs do.

#include "device.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/stack.h>

#include <numeric>
#include <vector>

namespace torch_device {

using at::Tensor;

void rms_norm_gradient(torch::jit::Stack* stack) {
  const auto wanted = torch::jit::pop(*stack).toBoolList();
  const auto scale = torch::jit::pop(*stack);
  const Tensor inverse = torch::jit::pop(*stack).toTensor();
  const auto axes = static_cast<int64_t>(torch::jit::pop(*stack).toListRef().size());
  const Tensor input = torch::jit::pop(*stack).toTensor();
  const Tensor above = torch::jit::pop(*stack).toTensor();
  const at::ScalarType type = input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const Tensor weight = scale.isNone() ? Tensor() : scale.toTensor();

  const int64_t rows = input.dim() - axes;
  std::vector<int64_t> leading(rows), normalised(axes), shape(input.dim(), 1);
  std::iota(leading.begin(), leading.end(), 0);
  std::iota(normalised.begin(), normalised.end(), rows);
  for (int64_t i = 0; i < rows; ++i) shape[i] = input.size(i);
  const Tensor factor = inverse.to(type).reshape(shape);
  const Tensor unit = input.to(type) * factor;
  const Tensor wide = above.to(type);

  Tensor of_input, of_weight;
  if (wanted.get(0)) {
    const Tensor scaled = weight.defined() ? wide * weight.to(type) : wide;
    const Tensor along = (scaled * unit).mean(normalised, /*keepdim=*/true);
    of_input = (factor * (scaled - unit * along)).to(input.scalar_type());
  }
  if (wanted.get(1) && weight.defined()) {
    const Tensor products = wide * unit;
    of_weight = (rows > 0 ? products.sum(leading) : products).to(weight.scalar_type());
  }
  torch::jit::push(*stack, of_input);
  torch::jit::push(*stack, of_weight);
}

}  // namespace torch_device
