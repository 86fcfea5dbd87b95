"""Replacements that are no layer: in decoder layers, of the attention, and of the loss."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections import Counter
from functools import partial
from types import MethodType, ModuleType

import torch
from torch import nn

from kernel_gym.packages.models.operations import OPERATIONS
from kernel_gym.packages.models.pretrained import PretrainedModel
from kernel_gym.packages.models.probe import Result, differs
from kernel_gym.packages.models.rewrite import Forward, fused_forward
from kernel_gym.packages.models.sites import Matches, Replaced, site_of, swap
from kernel_gym.packages.models.trace import TracedModule, by_class

NO_ATTENTION = "it does not call transformers' table of attention functions"
NO_SDPA = "its attention does more than softmax(q k) v: the model does not support sdpa"
PROMPT = {"input_ids", "attention_mask"}
"""Inputs of a model that writes tokens after a prompt."""
ATTENTION = "kernel_gym_package"
"""The name of a package's attention in transformers' table."""


def replace_in_decoder_layers(
    replaced: Replaced, sites: Matches, traced: list[TracedModule], kernel: ModuleType
) -> None:
    """Replaces forward methods of decoder layers in which a norm follows a residual sum."""
    norms = {one.path: one for one, _ in sites}
    reasons = dict.fromkeys(norms, "no residual sum comes before it in the forward method")
    for kind, group in by_class(traced).items():
        children = [name for name, _ in group[0].module.named_children()]
        inner = [f"{one.path}.{name}" for one in group for name in children]
        if not norms.keys() & set(inner):
            continue
        try:
            forward, used = fused_forward(kind, kernel.layers.add_and_normalise)
        except LookupError as error:
            reasons |= {p: f"{kind.__name__}: {error}" for p in inner if p in norms}
            continue
        _bind(replaced, group, used, forward, norms, reasons, kernel)
    for alone in by_class([norms[path] for path in reasons]).values():
        for reason in dict.fromkeys(reasons[one.path] for one in alone):
            same = [one for one in alone if reasons[one.path] == reason]
            replaced.sites.append(site_of(same, frozenset({"rsqrt", "mean"}), reason=reason))


def _bind(
    replaced: Replaced,
    group: list[TracedModule],
    used: tuple[str, ...],
    forward: Forward,
    norms: dict[str, TracedModule],
    reasons: dict[str, str],
    kernel: ModuleType,
) -> None:
    """Prepares the fused method for all layers whose norms the operator computes."""
    right: list[TracedModule] = []
    for one in group:
        paths = [f"{one.path}.{name}" for name in used]
        wrong = [reason for path in paths if (reason := _norm_differs(norms.get(path), kernel))]
        if wrong:
            reasons |= {path: wrong[0] for path in paths if path in norms}
        else:
            right.append(one)
            for path in paths:
                del reasons[path]
    if right:
        modules = [one.module for one in right]
        how = {"replaced_by": "add_and_normalise", "mechanism": "rewritten forward method"}
        replaced.sites.append(site_of(right, frozenset({"add", "rsqrt", "mean"}), **how))
        methods = [(module, MethodType(forward, module)) for module in modules]
        swap(replaced, methods)


def _norm_differs(norm: TracedModule | None, kernel: ModuleType) -> str:
    """Returns why a norm is not that of the operator."""
    if norm is None:
        return "the norm after its residual sum is no RMS norm"

    class Plain(nn.Module):
        def forward(self, hidden_states: torch.Tensor) -> Result:
            names = ("variance_epsilon", "eps", "epsilon", "norm_eps")
            eps = next(getattr(self, name) for name in names if hasattr(self, name))
            rows = hidden_states.flatten(0, -2)
            if why := kernel.refusal(rows, rows, self.weight, eps):
                raise TypeError(why)
            return OPERATIONS["rms_norm"].plain(hidden_states, self.weight, eps)

    reason = differs(norm, Plain, kernel)
    return f"its norm: {reason}" if reason else ""


def replace_attention(
    replaced: Replaced, sites: Matches, traced: list[TracedModule], kernel: ModuleType
) -> None:
    """Registers attention with the package's softmax, for models with the usual eager one.

    The original is transformers' default, `sdpa`, which has its softmax inside a fused operator,
    where the model supports it. Calls that the package refuses run it, too.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import eager_mask
    from transformers.models.llama import modeling_llama

    usual = _code(modeling_llama)
    groups = by_class([one for one, _ in sites])
    reasons = {kind: _attention_differs(kind, usual) for kind in groups}
    whole = not any(reason for reason in reasons.values() if reason != NO_ATTENTION)
    whole = whole and not all(reasons.values())
    for kind, group in groups.items():
        reason = reasons[kind] or ("" if whole else "another attention of the model differs")
        how = {"replaced_by": "attention", "mechanism": "transformers.AttentionInterface"}
        operators = frozenset({"_softmax"})
        replaced.sites.append(site_of(group, operators, **({"reason": reason} if reason else how)))
    if not whole:
        return
    replaced.fused = bool(replaced.model._supports_sdpa)
    original = "sdpa" if replaced.fused else "eager"
    replaced.model.set_attn_implementation(original)
    attention = kernel.layers.attention
    if replaced.fused:
        attention = partial(attention, own=sdpa_attention_forward)
    AttentionInterface.register(ATTENTION, attention)
    AttentionMaskInterface.register(ATTENTION, eager_mask)
    replaced.turn_on.append(lambda: replaced.model.set_attn_implementation(ATTENTION))
    replaced.turn_off.append(lambda: replaced.model.set_attn_implementation(original))


def replace_whole_attention(
    replaced: Replaced, sites: Matches, traced: list[TracedModule], kernel: ModuleType
) -> None:
    """Registers the package's attention, for models whose attention calls take it.

    The model runs once with it: places of which the package refuses all calls are left with the
    reason.
    The original is transformers' default, `sdpa`, whose masks the package's attention has too.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    model = replaced.model
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)
    reasons = _refused_calls(model, traced[0], kernel) if model._supports_sdpa else {}
    default = NO_ATTENTION if model._supports_sdpa else NO_SDPA
    groups: dict[tuple[type, str], list[TracedModule]] = {}
    for one, _ in sites:
        reason = reasons.get(id(one.module), default)
        groups.setdefault((type(one.module), reason), []).append(one)
    operators = dict((id(one), found) for one, found in sites)
    for (_, reason), group in groups.items():
        how = {"replaced_by": "attention", "mechanism": "transformers.AttentionInterface"}
        values = {"reason": reason} if reason else how
        replaced.sites.append(site_of(group, operators[id(group[0])], **values))
    if any(not reason for _, reason in groups):

        def on() -> None:
            AttentionInterface.register(ATTENTION, kernel.layers.attention)
            model.set_attn_implementation(ATTENTION)

        replaced.turn_on.append(on)
        replaced.turn_off.append(lambda: model.set_attn_implementation("sdpa"))


@torch.no_grad()
def _refused_calls(
    model: PretrainedModel, root: TracedModule, kernel: ModuleType
) -> dict[int, str]:
    """Returns why each module's attention calls are refused, by its id.

    The text is empty if a call is not. If a model generates tokens, one follows the first pass.
    """
    from transformers import AttentionInterface

    reasons: dict[int, str] = {}

    def watched(module: nn.Module, *arguments: object, **keywords: object) -> object:
        before = Counter(kernel.inputs.REFUSED)
        result = kernel.layers.attention(module, *arguments, **keywords)
        reason = next(iter(kernel.inputs.REFUSED - before), "")
        reasons[id(module)] = reason and reasons.get(id(module), reason)
        return result

    AttentionInterface.register(ATTENTION, watched)
    model.set_attn_implementation(ATTENTION)
    try:
        result = model(*root.arguments, **root.keywords)
        earlier = getattr(result, "past_key_values", None)
        if any(reasons.values()) and earlier is not None and set(root.keywords) == PROMPT:
            tokens = root.keywords["input_ids"]
            assert isinstance(tokens, torch.Tensor)
            model(tokens[:, -1:], past_key_values=earlier)
    finally:
        model.set_attn_implementation("sdpa")
    return reasons


def _attention_differs(kind: type[nn.Module], usual: str) -> str:
    """Returns why the attention of a class cannot be replaced; empty if it can."""
    code = getattr(kind.forward, "__code__", None)
    if code is None or "ALL_ATTENTION_FUNCTIONS" not in code.co_names:
        return NO_ATTENTION
    if _code(sys.modules[kind.__module__]) != usual:
        return "its eager attention does more than scale, mask and softmax"
    return ""


def _code(module: ModuleType) -> str:
    """Returns the eager attention of a module as code without annotations; empty if it has none."""
    function = getattr(module, "eager_attention_forward", None)
    if function is None:
        return ""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return "\n".join(ast.unparse(node) for node in tree.body[0].body)  # type: ignore[attr-defined]


def replace_loss(
    replaced: Replaced, sites: Matches, traced: list[TracedModule], kernel: ModuleType
) -> None:
    """Replaces the loss of a causal language model."""
    from transformers.loss.loss_utils import ForCausalLMLoss

    model = replaced.model
    top = [one for one in traced if one.module is model] or traced[:1]
    operators = frozenset({"nll_loss_forward"})
    original = model.loss_function
    if not sites:
        return
    reason = ""
    if original is not ForCausalLMLoss:
        reason = f"its loss is {getattr(original, '__name__', original)}"
    elif traced[0].returned not in (None, model.dtype):
        reason = f"its logits are {traced[0].returned}, expected {model.dtype}"
    if reason:
        replaced.sites.append(site_of(top, operators, reason=reason))
        return
    how = {"replaced_by": "causal_lm_loss", "mechanism": "model.loss_function"}
    replaced.sites.append(site_of(top, operators, **how))

    def on() -> None:
        model.loss_function = kernel.layers.causal_lm_loss

    def off() -> None:
        model.loss_function = original

    replaced.turn_on.append(on)
    replaced.turn_off.append(off)
