"""Unusable problems are refused, with the reason."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.admission import check_values
from kernel_gym.tasks import ScalarArg, Scale, TensorArg, get_problem
from kernel_gym.tasks.controls.answers import CONTROLS
from kernel_gym.tasks.verdicts import FAILS

Softmax = type(get_problem("softmax"))
LayerNorm = type(get_problem("layer_norm"))


class Constant(Softmax):
    """Rows of a softmax always add up to one."""

    def oracle(self, x):
        return (torch.softmax(x.double(), 1).sum(1, keepdim=True).expand(x.shape).contiguous(),)

    def reference(self, x):
        return (self.oracle(x)[0].half(),)


class Random(Softmax):
    """Noise that does not come from the generator."""

    def reference(self, x):
        return (torch.softmax(x + 1e-3 * torch.randn(x.shape).half(), 1),)


class Wrong(Softmax):
    """The reference differs from the oracle."""

    def reference(self, x):
        return (torch.softmax(x + 1, 0),)


class NotANumber(Softmax):
    """The oracle divides by zero."""

    def oracle(self, x):
        return (x.double() * (x.double().sum() * 0) / 0,)


class Deaf(Softmax):
    """An argument that nothing depends on."""

    args = (*Softmax.args, TensorArg("unused", torch.float16, shape="rows, cols"))

    def inputs(self, workload, generator):
        values = super().inputs(workload, generator)
        return {**values, "unused": torch.randn(values["x"].shape, generator=generator).half()}

    def oracle(self, x, unused):
        return super().oracle(x)

    def reference(self, x, unused):
        return super().reference(x)


class BlindToEpsilon(LayerNorm):
    """With data of ordinary size a small epsilon changes nothing."""

    args = (*LayerNorm.args[:3], ScalarArg("eps", float, values=(1e-6,)))
    distributions = ("normal",)


class NoBias(LayerNorm):
    """Reference and oracle ignore the weight, and the bias dominates."""

    distributions = ("tiny",)

    def oracle(self, x, weight, bias, eps):
        return (1e-9 * x.double() + bias.double() + 0 * eps,)

    def reference(self, x, weight, bias, eps):
        return (self.oracle(x, weight, bias, eps)[0].half(),)


@pytest.mark.parametrize(
    ("problem", "reasons"),
    [
        (Constant(), ["input 'x' changes no output", "mean: passes: out", "stale output: passes"]),
        (Random(), ["differ between two calls"]),
        (Wrong(), ["the reference's 'out' is", "roundings off"]),
        (NotANumber(), ["the oracle has NaN on rows=8"]),
        (Deaf(), ["input 'unused' changes no output"]),
        (BlindToEpsilon(), ["wrong epsilon: passes: eps times 0, eps times 10"]),
        (NoBias(), ["input 'weight' changes no output", "bias only: passes"]),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else "",
)
def test_an_unusable_problem_is_refused(problem, reasons):
    refused = "\n".join(check_values(problem, Scale.SIM, 0).refused)
    for reason in reasons:
        assert reason in refused


class DeafToAParameter(Deaf):
    """The argument is a parameter of a module, such as a bias before a normalisation."""

    parameters = frozenset({"unused"})


def test_a_parameter_without_effect_is_noted_and_refuses_nothing():
    report = check_values(DeafToAParameter(), Scale.SIM, 0)
    assert report.refused == ()
    assert report.notes == ("parameter 'unused' changes no output",)
    assert check_values(Deaf(), Scale.SIM, 0).notes == ()


@pytest.mark.parametrize("name", ["cross_entropy", "layer_norm"])  # the others: test_admit.py
def test_a_good_problem_is_not_refused(name):
    report = check_values(get_problem(name), Scale.SIM, 0)
    assert report.refused == ()
    assert list(report.controls) == list(CONTROLS)
    results = report.controls.values()
    assert all(text == FAILS or text.startswith("does not apply") for text in results)
    assert report.controls["zeros"] == report.controls["no-op launch"] == FAILS
