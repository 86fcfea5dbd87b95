// Cells of recurrent networks. PyTorch has fused kernels of them for GPUs and none for the CPU.
//
// Each function takes its arguments from the stack, CPU tensors over the device's memory, and puts
// its results there. They compute in float where the tensors are half, as GPUs do.

#include "device.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/stack.h>

#include <unordered_map>

namespace torch_device {

namespace {

using at::Tensor;
using torch::jit::Stack;

Tensor wide(const Tensor& value) {
  if (!value.defined() || value.scalar_type() == at::kDouble) return value;
  return value.to(at::kFloat);
}

Tensor taken(Stack* stack) {
  const auto value = torch::jit::pop(*stack);
  return value.isNone() ? Tensor() : value.toTensor();
}

Tensor sum_of(const Tensor& first, const Tensor& second) {
  if (!first.defined()) return wide(second);
  return second.defined() ? wide(first) + wide(second) : wide(first);
}

Tensor sum_of_rows(const Tensor& gates, bool wanted) { return wanted ? gates.sum({0}) : Tensor(); }

void lstm_cell(Stack* stack) {
  const Tensor hidden_bias = taken(stack), input_bias = taken(stack), cell = taken(stack);
  const Tensor hidden = taken(stack), input = taken(stack);
  const auto type = input.scalar_type();
  const Tensor gates = sum_of(sum_of(input, hidden), sum_of(input_bias, hidden_bias));
  const auto parts = gates.chunk(4, 1);
  const Tensor in = parts[0].sigmoid(), forget = parts[1].sigmoid(), made = parts[2].tanh();
  const Tensor out = parts[3].sigmoid();
  const Tensor next = forget * wide(cell) + in * made;
  torch::jit::push(*stack, (out * next.tanh()).to(type));
  torch::jit::push(*stack, next.to(type));
  torch::jit::push(*stack, at::cat({in, forget, made, out}, 1).to(type));
}

void lstm_cell_gradient(Stack* stack) {
  const bool biased = torch::jit::pop(*stack).toBool();
  const Tensor workspace = taken(stack), next = taken(stack), cell = taken(stack);
  const Tensor of_next = taken(stack), of_hidden = taken(stack);
  if (!of_next.defined() && !of_hidden.defined()) {
    for (int i = 0; i < 3; ++i) torch::jit::push(*stack, Tensor());
    return;
  }
  const auto type = workspace.scalar_type();
  const auto parts = wide(workspace).chunk(4, 1);
  const Tensor &in = parts[0], &forget = parts[1], &made = parts[2], &out = parts[3];
  const Tensor bent = wide(next).tanh();
  const Tensor above = of_hidden.defined() ? wide(of_hidden) : at::zeros_like(bent);
  const Tensor of_cell = sum_of(above * out * (1 - bent * bent), of_next);
  const Tensor gates = at::cat({of_cell * made * (1 - in) * in,
                                of_cell * wide(cell) * (1 - forget) * forget,
                                of_cell * in * (1 - made * made), above * bent * (1 - out) * out},
                               1).to(type);
  torch::jit::push(*stack, gates);
  torch::jit::push(*stack, (of_cell * forget).to(type));
  torch::jit::push(*stack, sum_of_rows(gates, biased));
}

void gru_cell(Stack* stack) {
  const Tensor hidden_bias = taken(stack), input_bias = taken(stack), before = wide(taken(stack));
  const Tensor hidden = taken(stack), input = taken(stack);
  const auto type = input.scalar_type();
  const auto of_input = sum_of(input, input_bias).chunk(3, 1);
  const auto of_hidden = sum_of(hidden, hidden_bias).chunk(3, 1);
  const Tensor reset = (of_input[0] + of_hidden[0]).sigmoid();
  const Tensor update = (of_input[1] + of_hidden[1]).sigmoid();
  const Tensor made = (of_input[2] + reset * of_hidden[2]).tanh();
  torch::jit::push(*stack, (made + update * (before - made)).to(type));
  torch::jit::push(*stack, at::cat({reset, update, made, before, of_hidden[2]}, 1).to(type));
}

void gru_cell_gradient(Stack* stack) {
  const bool biased = torch::jit::pop(*stack).toBool();
  const Tensor workspace = taken(stack), of_hidden = wide(taken(stack));
  const auto type = workspace.scalar_type();
  const auto parts = wide(workspace).chunk(5, 1);
  const Tensor &reset = parts[0], &update = parts[1], &made = parts[2];
  const Tensor of_update = of_hidden * (parts[3] - made) * (1 - update) * update;
  const Tensor of_made = of_hidden * (1 - update) * (1 - made * made);
  const Tensor of_reset = of_made * parts[4] * (1 - reset) * reset;
  const Tensor input = at::cat({of_reset, of_update, of_made}, 1).to(type);
  const Tensor hidden = at::cat({of_reset, of_update, of_made * reset}, 1).to(type);
  torch::jit::push(*stack, input);
  torch::jit::push(*stack, hidden);
  torch::jit::push(*stack, (of_hidden * update).to(type));
  torch::jit::push(*stack, sum_of_rows(input, biased));
  torch::jit::push(*stack, sum_of_rows(hidden, biased));
}

}  // namespace

Computation own_computation(const std::string& name) {
  static const std::unordered_map<std::string, Computation> known = {
      {"aten::_thnn_fused_lstm_cell", lstm_cell},
      {"aten::_thnn_fused_lstm_cell_backward_impl", lstm_cell_gradient},
      {"aten::_thnn_fused_gru_cell", gru_cell},
      {"aten::_thnn_fused_gru_cell_backward", gru_cell_gradient},
      {"aten::_fused_rms_norm_backward", rms_norm_gradient},
  };
  const auto found = known.find(name);
  return found == known.end() ? nullptr : found->second;
}

}  // namespace torch_device
