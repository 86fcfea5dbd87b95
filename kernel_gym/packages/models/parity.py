"""Whether a model stays right with a package: errors against fp64, gradients and greedy tokens."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from kernel_gym.packages.models.build import inputs_of
from kernel_gym.packages.models.pretrained import PretrainedModel
from kernel_gym.packages.models.quantised import widen
from kernel_gym.packages.models.report import Closeness, Tokens
from kernel_gym.packages.models.sites import Replaced
from kernel_gym.packages.models.trace import first_of

STEPS = 64
"""Greedy tokens that have to be equal, as FastKernels asks (arXiv 2605.23215)."""
GREEDY: dict[str, object] = {
    "max_new_tokens": STEPS,
    "min_new_tokens": STEPS,
    "do_sample": False,
    "pad_token_id": 0,
}
PROMPTS = 32
"""Prompts of which the most decisive ones are compared."""
MAX_RMS_FACTOR = 2.0
MAX_LARGEST_FACTOR = 4.0
"""The package's error may be so many times the original's, which differs from fp64 by rounding
alone. The largest of thousands of errors varies more between two orders of rounding than their root
mean square."""
ROUNDINGS = 0.5
"""Errors up to this part of one rounding of the model's type are always right."""


@dataclass(frozen=True)
class Outputs:
    """A model's output and the gradient of its parameters, in fp64 on the CPU."""

    output: Tensor
    gradients: Tensor


def outputs_of(model: PretrainedModel, inputs: Mapping[str, Tensor]) -> Outputs:
    """Returns the output of a model, and gradients of the loss or of a drawn sum of the output."""
    with torch.enable_grad():
        model.zero_grad()
        result = model(**inputs)
        output = result.loss if "labels" in inputs else first_of(result)
        generator = torch.Generator().manual_seed(2)
        drawn = torch.randn(output.shape, generator=generator)
        (output * drawn.to(output.device, output.dtype)).sum().backward()
    gradients = [
        p.grad.detach().double().cpu().flatten() for p in model.parameters() if p.grad is not None
    ]
    model.zero_grad()
    return Outputs(output.detach().double().cpu(), torch.cat(gradients))


@torch.no_grad()
def truth_of(model: PretrainedModel, inputs: Mapping[str, Tensor]) -> PretrainedModel:
    """Returns a copy of a model in fp64, or in fp32 if an operator of it has no fp64."""
    wide = widen(copy.deepcopy(model), torch.float64)
    try:
        wide(**cast(inputs, wide))
    except RuntimeError:
        return widen(copy.deepcopy(model), torch.float32)
    return wide


def cast(inputs: Mapping[str, Tensor], model: PretrainedModel) -> dict[str, Tensor]:
    """Returns inputs on the device of a model, floats in its type."""
    return {
        name: value.to(model.device, model.dtype if value.is_floating_point() else value.dtype)
        for name, value in inputs.items()
    }


@torch.no_grad()
def decisive(
    truth: PretrainedModel, inputs: Mapping[str, Tensor], batch: int, tokens: int
) -> dict[str, Tensor]:
    """Returns the prompts on which rounding decides least: greedy tokens win by the widest margins.

    Random weights give logits that are often nearly equal, so that roundings would pick the token.

    Args:
        truth: The model in fp64.
        inputs: Its inputs, of which token ids are replaced.
        batch: Sequences.
        tokens: Tokens of a prompt.
    """
    drawn = inputs_of(truth, PROMPTS, tokens)
    prompts = cast({name: drawn[name] for name in ("input_ids", "attention_mask")}, truth)
    asked = {"output_logits": True, "return_dict_in_generate": True}
    result = truth.generate(**prompts, **GREEDY, **asked)
    assert not isinstance(result, Tensor)
    best = torch.stack(result.logits).topk(2, dim=-1).values
    margins = (best[..., 0] - best[..., 1]).amin(0)
    chosen = margins.topk(batch).indices.cpu()
    return {name: value[chosen] for name, value in drawn.items() if name in inputs}


def closeness(
    replaced: Replaced, inputs: Mapping[str, Tensor], truth: Outputs
) -> tuple[Closeness, ...]:
    """Returns the errors of output and gradients with and without the package.

    Args:
        replaced: The model, on its device.
        inputs: Its inputs, on the same device.
        truth: The same of the model in fp64.
    """
    original = outputs_of(replaced.model, inputs)
    with replaced.package() as model:
        ours = outputs_of(model, inputs)
    rounding = torch.finfo(replaced.model.dtype).eps / 2
    name = "loss" if "labels" in inputs else "logits"
    return (
        _close(name, truth.output, original.output, ours.output, rounding),
        _close("gradients", truth.gradients, original.gradients, ours.gradients, rounding),
    )


def _close(name: str, truth: Tensor, original: Tensor, ours: Tensor, rounding: float) -> Closeness:
    """Compares errors; values that are not finite are infinitely wrong, written as 1e30."""

    def errors(values: Tensor) -> tuple[float, float]:
        if values.shape != truth.shape:
            return 1e30, 1e30
        gap = (values - truth).abs()
        scale, largest = truth.square().mean().sqrt(), truth.abs().max()
        pair = (gap.square().mean().sqrt() / scale).item(), (gap.max() / largest).item()
        return (1e30, 1e30) if not all(e < 1e30 for e in pair) else pair

    (rms, most), (our_rms, our_most) = errors(original), errors(ours)
    floor = ROUNDINGS * rounding
    right = our_rms <= MAX_RMS_FACTOR * max(rms, floor)
    right = right and our_most <= MAX_LARGEST_FACTOR * max(most, floor)
    return Closeness(
        output=name,
        original=rms,
        replaced=our_rms,
        original_largest=most,
        replaced_largest=our_most,
        right=right,
    )


def compare_tokens(
    original: Tensor, ours: Tensor, prompt: int, truth: PretrainedModel, model: PretrainedModel
) -> Tokens:
    """Compares greedy tokens. At the first difference it asks the model in fp64.

    Args:
        original: Sequences with the prompt [requests, tokens].
        ours: The same with the package.
        prompt: Tokens of the prompt; 0 if the sequences do not repeat it.
        truth: The model in fp64.
        model: The original.
    """
    steps = original.shape[1] - prompt
    same = (original == ours).cpu()[:, prompt:]
    if bool(same.all()):
        return Tokens(steps=steps, requests=len(original), equal=steps)
    equal = int(same.all(0).int().argmin())
    row = int(same[:, equal].int().argmin())
    margin = error = None
    if not getattr(model.config, "is_encoder_decoder", False):
        prefix = original[row : row + 1, : prompt + equal]
        with torch.no_grad():
            right = truth(prefix.to(truth.device)).logits[0, -1].cpu()
            rounded = model(prefix).logits[0, -1].double().cpu()
        margin = (right.max() - right[int(ours[row, prompt + equal])]).item()
        error = (rounded - right).abs().max().item()
    return Tokens(steps=steps, requests=len(original), equal=equal, margin=margin, error=error)
