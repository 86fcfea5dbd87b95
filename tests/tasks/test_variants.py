"""Templates: their variants, and that these kernels are right."""

import pytest

from kernel_gym.executors import make_executor
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_problem, problem_names
from kernel_gym.tasks.variants import KernelTemplate, templates, variants

FAST = {"BLOCK": 1024}
WITH_TEMPLATES = [name for name in problem_names() if templates(get_problem(name))]


def test_constants_with_a_list_are_open_and_others_are_not():
    template = KernelTemplate("p", "s", "A = 1  # of 1 2\nB = 3\nC_2 = 8  # of 8 16 32\n")
    assert template.space == {"A": (1, 2), "C_2": (8, 16, 32)}
    assert template.variant({"A": 2, "C_2": 16}).source == "A = 2\nB = 3\nC_2 = 16\n"
    assert len(list(template.variants())) == 6


@pytest.mark.parametrize("name", WITH_TEMPLATES)
def test_variants_are_distinct_and_name_their_entry(name):
    kernels = variants(get_problem(name))
    assert len({variant.source for variant in kernels}) == len(kernels) > 10
    assert all(f"\ndef {name}(" in v.source and "# of" not in v.source for v in kernels)


def test_some_problem_has_templates():
    assert "softmax" in WITH_TEMPLATES


@pytest.fixture(scope="module")
def executor():
    with make_executor("inline", device="sim:gfx942", seed=0) as executor:
        yield executor


@pytest.mark.parametrize("name", WITH_TEMPLATES)
def test_one_kernel_a_structure_passes(name, executor):
    for template in templates(get_problem(name)):
        source = template.variant(FAST | {"WARPS": template.space["WARPS"][-1]}).source
        evaluation = executor.evaluate(f"triton2triton/{name}", source)
        assert evaluation.outcome is Outcome.PASSED, (template.structure, evaluation)
