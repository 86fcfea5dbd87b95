"""Kernels that once passed although they are wrong: each is a start kernel with a fault.

They ignore a scalar argument, support a part of the legal domain, compute a similar operator, or
overflow. An audit of the suite found them; every one is refused now.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Attack:
    """A faulty kernel: replacements in the start kernel, fixed arguments, and limits of sizes."""

    task: str
    fixed: tuple[tuple[str, float], ...] = ()
    limit: str = ""
    """A condition on the arguments; a call that breaks it fails."""
    replaced: tuple[tuple[str, str], ...] = ()

    def source(self) -> str:
        """Returns the text of the kernel."""
        task = get_task(self.task)
        text = task.kernel_source
        for old, new in self.replaced:
            assert old in text, (self.task, old)
            text = text.replace(old, new)
        if self.limit or self.fixed:
            text += self._wrapper(task.entry, [arg.name for arg in task.problem.args])
        return text

    def _wrapper(self, entry: str, names: list[str]) -> str:
        lines = ["", "", f"_right = {entry}", "", "", f"def {entry}({', '.join(names)}):"]
        if self.limit:
            lines += [f"    if not ({self.limit}):", '        raise ValueError("too large")']
        lines += [f"    {name} = {value!r}" for name, value in self.fixed]
        return "\n".join([*lines, f"    return _right({', '.join(names)})", ""])


def _fixed(problem: str, **values: float) -> Attack:
    return Attack(f"triton2triton/{problem}", fixed=tuple(values.items()))


def _limited(problem: str, limit: str) -> Attack:
    return Attack(f"triton2triton/{problem}", limit=limit)


def _replaced(task: str, *pairs: tuple[str, str]) -> Attack:
    return Attack(task, replaced=pairs)


_ERF = "0.5 * {0} * (1.0 + tl.erf({0} * 0.7071067811865476))"
_TANH = "{0} / (1.0 + tl.exp(-1.5957691216 * ({0} + 0.044715 * {0} * {0} * {0})))"

ATTACKS = {
    "rms_norm: eps 1e-6": _fixed("rms_norm", eps=1e-6),
    "rms_norm: eps 1e-5": _fixed("rms_norm", eps=1e-5),
    "add_rms_norm: eps": _fixed("add_rms_norm", eps=1e-6),
    "layer_norm: eps": _fixed("layer_norm", eps=1e-5),
    "l2_normalize: eps": _fixed("l2_normalize", eps=1e-6),
    "add_rms_norm_quant: eps": _fixed("add_rms_norm_quant", eps=1e-5),
    "qk_norm_rope in HIP: eps": _replaced("hip2hip/qk_norm_rope", ("+ eps)", "+ 1e-6f)")),
    "huber_loss: delta": _fixed("huber_loss", delta=1.0),
    "lion_step: decay": _fixed("lion_step", decay=1.0),
    "lion_step: all but decay": _fixed("lion_step", lr=1e-4, beta1=0.9, beta2=0.99),
    "adamw_step: beta2 and eps": _fixed("adamw_step", beta2=0.999, eps=1e-8),
    "kl_div: temperature": _fixed("kl_div", temperature=2.0),
    "cross_entropy: ignore_index": _fixed("cross_entropy", ignore_index=-100),
    "smoothed_cross_entropy: smoothing": _fixed("smoothed_cross_entropy", smoothing=0.1),
    "smoothed_cross_entropy: ignore_index": _fixed("smoothed_cross_entropy", ignore_index=-100),
    "masked_softmax: scale": _fixed("masked_softmax", scale=32**-0.5),
    "mla_decode: scale": _fixed("mla_decode", scale=576**-0.5),
    "moe_grouped_topk: factor": _fixed("moe_grouped_topk", factor=2.5),
    "timestep_embedding: max_period": _fixed("timestep_embedding", max_period=1e4),
    "heat_stencil: rate": _fixed("heat_stencil", rate=0.1),
    "dropout: p 0.1 or 0.5": _limited("dropout", "abs(p - 0.1) < 1e-6 or p == 0.5"),
    "causal_attention: scale": _fixed("causal_attention", scale=0.125),
    "rms_norm: 8192 columns": _limited("rms_norm", "x.shape[1] <= 8192"),
    "row_sum: 131072 columns": _limited("row_sum", "x.shape[1] <= 131072"),
    "nms_select: 512 boxes": _limited("nms_select", "boxes.shape[1] <= 512"),
    "row_sort: 2048 columns": _limited("row_sort", "x.shape[1] <= 2048"),
    "causal_attention: heads of 64": _limited("causal_attention", "q.shape[3] == 64"),
    "depthwise_conv2d in HIP: reach 3": _replaced(
        "hip2hip/depthwise_conv2d",
        ("hipStream_t stream) {", "hipStream_t stream) {\n  if (reach > 3) return 1;"),
    ),
    "bias_residual_gelu: tanh form": _replaced(
        "triton2triton/bias_residual_gelu", (_ERF.format("h"), _TANH.format("h"))
    ),
    "geglu: tanh form": _replaced(
        "triton2triton/geglu", (_ERF.format("gate"), _TANH.format("gate"))
    ),
    "gelu: error function": _replaced(
        "triton2triton/gelu", ("0.5 * x * (1.0 + tanh)", _ERF.format("x"))
    ),
    "gelu: constant off by 1 %": _replaced("triton2triton/gelu", ("0.044715", "0.045162")),
    "matmul_bias_gelu: error function": _replaced(
        "triton2triton/matmul_bias_gelu",
        ("h / (1.0 + tl.exp(-2.0 * inner))", _ERF.format("h")),
    ),
    "paged_decode_attention: no maximum": _replaced(
        "triton2triton/paged_decode_attention",
        ("tl.exp(scores - new_top)", "tl.exp(scores)"),
        ("tl.exp(top - new_top)", "1.0"),
    ),
}


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator("sim:gfx942") as evaluator:
        yield evaluator


@pytest.mark.parametrize("name", ATTACKS)
def test_a_wrong_kernel_of_the_audit_is_refused(evaluator, name):
    attack = ATTACKS[name]
    evaluation = evaluator.evaluate(get_task(attack.task), attack.source(), seed=7)
    assert evaluation.outcome in (
        Outcome.WRONG_VALUES,
        Outcome.UNSEEN_FAILED,
        Outcome.RUNTIME_ERROR,
    ), evaluation.message
    limited = attack.limit or "reach" in name
    assert (evaluation.outcome is Outcome.RUNTIME_ERROR) <= bool(limited), evaluation.message
