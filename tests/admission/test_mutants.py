"""The mutation test of references: faults that data does not show survive, others do not."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.admission.mutants import mutants, mutation_test
from kernel_gym.tasks import ScalarArg, Scale, get_problem

RmsNorm = type(get_problem("rms_norm"))


class BlindToEpsilon(RmsNorm):
    """One epsilon in all workloads, so that a kernel may ignore the argument."""

    special_values = False  # the square of the largest finite value is not finite
    args = (*RmsNorm.args[:2], ScalarArg("eps", float, values=(1e-6,)))


class Boundary(RmsNorm):
    """Values of no workload lie on the boundary of a comparison."""

    def oracle(self, x, weight, eps):
        return (torch.where(x.double() > 0.1234567, x.double(), eps * 0 + weight.double()),)

    def reference(self, x, weight, eps):
        return (torch.where(x > 0.1234567, x, weight),)

    yardstick = reference


class WrongForOneEpsilon(BlindToEpsilon):
    """Its reference is refused wherever epsilon has the value of an end of its range."""

    args = (*RmsNorm.args[:2], ScalarArg("eps", float, values=(1e-6, 1e-2)))

    def reference(self, x, weight, eps):
        return tuple(out * (1 + (eps > 1e-3)) for out in super().reference(x, weight, eps))


def test_a_workload_that_the_reference_fails_kills_no_mutant():
    report = mutation_test(WrongForOneEpsilon(), Scale.SIM, 0)
    assert report.left_out
    assert not any("eps=1e-06" in workload for workload in report.left_out)
    assert report.killed > 0
    assert mutation_test(get_problem("softmax"), Scale.SIM, 0).left_out == ()


def test_a_fixed_argument_survives_where_the_data_does_not_show_it():
    report = mutation_test(BlindToEpsilon(), Scale.SIM, 0)
    assert report.survivors == ("eps is always 1e-06",)


def test_a_boundary_that_no_value_lies_on_survives():
    report = mutation_test(Boundary(), Scale.SIM, 0)
    assert any("move the boundary of x > 0.1234567" in change for change in report.survivors)


@pytest.mark.parametrize("name", ["softmax", "rms_norm", "gelu", "cross_entropy", "huber_loss"])
def test_no_mutant_of_a_problem_survives(name):
    report = mutation_test(get_problem(name), Scale.SIM, 0)
    assert report.survivors == ()
    assert report.killed > 0


def test_mutants_change_one_point_each():
    changes = [mutant.change for mutant in mutants(get_problem("huber_loss"))]
    assert len(set(changes)) == len(changes)
    assert any(change.startswith("delta is always") for change in changes)
